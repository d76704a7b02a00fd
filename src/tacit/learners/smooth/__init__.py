"""What learners share that descend by gradients: starts, steps, and what a checkpoint keeps of them."""
