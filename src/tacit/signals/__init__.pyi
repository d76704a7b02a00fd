from tacit.signals.files import Word as Word
from tacit.signals.files import format_ctm as format_ctm
from tacit.signals.files import format_textgrid as format_textgrid
from tacit.signals.files import read_wav as read_wav
from tacit.signals.frames import cut_frames as cut_frames
