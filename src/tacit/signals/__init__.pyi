from tacit.signals.frames import cut_frames as cut_frames
from tacit.signals.timings import format_ctm as format_ctm
from tacit.signals.timings import format_textgrid as format_textgrid
from tacit.signals.transcriber import Word as Word
from tacit.signals.wav import read_wav as read_wav
