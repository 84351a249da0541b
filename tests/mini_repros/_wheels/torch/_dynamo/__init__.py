from torch._dynamo import config, convert_frame, utils
