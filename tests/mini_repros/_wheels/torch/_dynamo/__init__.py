from torch._dynamo import utils
