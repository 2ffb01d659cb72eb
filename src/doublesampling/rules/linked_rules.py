"""Compile a rule only as far as its callers need it: to LLVM code that is linked into them, not to machine code.

Numba optimises every function by itself and makes machine code for it, and does both once more for each function that
calls it. A rule is called from compiled code only: Numba links its LLVM code there and optimises the whole, so the
rule's own machine code is never run. Leaving it out saves a third of the time to compile, or more.

These classes override parts of Numba that are not documented. Where those are missing, ``OPTIONS`` is empty and rules
are compiled in the usual way: slower to compile, with the same results.
"""

from typing import Any

from numba import types

OPTIONS: dict[str, Any] = {}
"""What ``numba.njit`` takes for a rule, so that it is compiled no further than necessary."""

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
except ImportError:  # another version of Numba
    pass
else:

    class _NoEnvironment:
        """Numba's code generator, without the address of an environment: that is for code which uses Python objects."""

        def __init__(self, codegen: Any) -> None:
            self._codegen = codegen

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

        def set_env(self, name: str, environment: Any) -> None:
            """Do nothing: no machine code was made that could look it up."""

    class _LinkedLibrary(JITCodeLibrary):
        """The LLVM code of a rule, to be linked into its callers."""

        def _optimize_final_module(self) -> None:
            """Simplify a little: the caller's module is optimised as a whole."""
            passes, builder = self._codegen._module_pass_manager(
                loop_vectorize=False, slp_vectorize=False, opt=self._codegen._opt_level, cost="cheap"
            )
            passes.run(self._final_module, builder)

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        @property
        def codegen(self) -> Any:
            return _NoEnvironment(self._codegen)

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

    class _LinkedCompiler(Compiler):
        """Numba's compiler with that library."""

        def define_pipelines(self) -> Any:
            if self.state.library is None:
                codegen = self.state.targetctx.codegen()
                self.state.library = _LinkedLibrary(codegen, self.state.func_id.func_qualname)
            return super().define_pipelines()

    OPTIONS["pipeline_class"] = _LinkedCompiler


def ignore_literals(compiled: Any) -> None:
    """Let a rule be compiled once for all values of a constant argument.

    Numba compiles a function anew for each integer that stands as such in a call: f(x, 0), f(x, 1), f(x, i) are three.
    """
    template = getattr(compiled, "get_call_template", None)
    if template is None:  # another version of Numba
        return

    def without_literals(args: Any, kws: Any) -> Any:
        return template([types.unliteral(each) for each in args], {k: types.unliteral(v) for k, v in kws.items()})

    compiled.get_call_template = without_literals
