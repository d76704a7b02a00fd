"""Images: photos, boxes, windows, feature maps, regions; detection, the locator and the segmenter."""
