# tests/python/test_tools.py - check, opt and assemble
import pytest

import ptxgen
from ptx import RACE, SCALE


def test_check_finds_what_the_program_finds():
    assert [finding for finding in ptxgen.check(SCALE) if finding.severity == "error"] == []
    found = ptxgen.check(RACE, block=64, file="race.ptx")
    race = next(finding for finding in found if finding.rule == "shared-race")
    assert race.severity == "error" and race.file == "race.ptx"
    assert "shared.u32" in race.statement
    assert race.block == (64, 1, 1) and race.launch == 0 and not race.fault
    syntax, = ptxgen.check(SCALE + "nonsense")
    assert syntax.rule == "syntax" and syntax.line == len(SCALE.splitlines()) + 1
    with pytest.raises(ptxgen.PtxgenError, match="which is no target"):
        ptxgen.check(SCALE, target="gfx90a")


def test_opt_returns_the_text_and_what_each_pass_did():
    source = SCALE.replace("mul.rn.f32 %f3, %f2, %f1;", "mul.f32 %f3, %f2, %f1;\n"
                                                       "  add.f32 %f3, %f3, %f1;")
    made = ptxgen.opt(source, ["fma_fusion"])
    assert "fma.rn.f32" in made.ptx and made.changed
    fusion, = made.passes
    assert (fusion.name, fusion.fired, fusion.changed) == ("fma_fusion", 1, True)
    assert "fused" in made.report
    assert "fma.rn.f32" not in ptxgen.opt(source, contract=False).ptx
    assert not ptxgen.opt(source, []).changed
    with pytest.raises(ptxgen.PtxgenError) as raised:
        ptxgen.opt(source, "magic")
    assert raised.value.status == "optimize" and raised.value.code == "unknown-pass"


def test_assemble_makes_machine_code_or_says_what_is_missing():
    with pytest.raises(ptxgen.PtxgenError, match="options.tool is 'gas'"):
        ptxgen.assemble(SCALE, "sm_80", tool="gas")
    try:
        made = ptxgen.assemble(SCALE, "sm_80")
    except ptxgen.PtxgenError as error:
        assert error.code == "no-assembler" and error.log
        pytest.skip("no assembler (nvJitLink or ptxas) on this machine")
    assert made.image[:4] == b"\x7fELF"
    assert [kernel.name for kernel in made.kernels] == ["scale"]
    assert made.kernels[0].registers == made.registers > 0
