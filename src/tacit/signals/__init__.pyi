from tacit.signals.frames import cut_frames as cut_frames
from tacit.signals.wav import read_wav as read_wav
