class OutputGraph:
    export = False

    def __init__(self, code, compiler_fn):
        self.code_options = {"co_name": code.co_name, "co_qualname": getattr(code, "co_qualname", code.co_name)}
        self.compiler_fn = compiler_fn

    def call_user_compiler(self, graph):
        return self.compiler_fn(graph)
