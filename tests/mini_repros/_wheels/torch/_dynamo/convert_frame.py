from torch._dynamo.output_graph import OutputGraph
from torch._dynamo.utils import counters


def _compile(code, globals_, locals_, function, compiler_fn):
    compiled = OutputGraph(code, compiler_fn).call_user_compiler(function)
    counters["stats"]["unique_graphs"] += 1
    return compiled
