// tests/runtime/disassembler_test.cpp - machine code read, and what it does with memory
#include "ptxgen/runtime/assemble/disassembler.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;

namespace {

using Lines = std::vector<std::pair<const char*, const char*>>;

SassFunction function(const Lines& lines) {
  SassFunction built;
  built.name = "k";
  for (const auto& [opcode, operands] : lines) {
    built.instructions.push_back(
        {static_cast<std::uint32_t>(16 * built.instructions.size()), "", opcode, operands});
  }
  return built;
}

// A program that prints this and ends with that status.
std::string program(const TemporaryDirectory& folder, const std::string& prints, int status) {
  const std::string path = folder.file("nvdisasm");
  write_file(path, "#!/bin/sh\ncat <<'EOF'\n" + prints + "\nEOF\nexit " + std::to_string(status));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

Settings settings_with(const std::string& nvdisasm) {
  Settings settings;
  settings.search_usual_places = false;
  settings.nvdisasm_path = nvdisasm;
  return settings;
}

}  // namespace

TEST_CASE("loads are together until an instruction names what one of them loads", "[sass]") {
  const SassSummary summary = summary_of(function({{"LDG.E.128", "R4,desc[UR6][R2.64]"},
                                                   {"LDG.E.NA.128.CONSTANT", "R8,desc[UR6][R2.64]"},
                                                   {"IADD3", "R2,P0,R2,0x20,RZ"},
                                                   {"LDG.E", "R12,desc[UR6][R2.64]"},
                                                   {"FFMA", "R20,R11,R0,R20"},
                                                   {"LDG.E.U16", "R13,desc[UR6][R2.64]"},
                                                   {"EXIT", ""}}));
  CHECK(summary.instructions == 7);
  CHECK(summary.in_flight.loads == 3);
  CHECK(summary.streamed.loads == 1);
  CHECK(summary.streamed.bytes == 16);
  CHECK(summary.in_flight.bytes == 36);
  CHECK(summary.in_flight.offset == 0x30);
  CHECK(summary.loops.empty());
  CHECK(summary.main_loop() == nullptr);
}

TEST_CASE("waiting for a load is waiting for those ahead of it", "[sass]") {
  // R8 is the second of three: the third stays.
  const SassSummary summary = summary_of(function({{"LDG.E", "R7,desc[UR6][R2.64]"},
                                                   {"LDG.E", "R8,desc[UR6][R2.64]"},
                                                   {"LDG.E", "R9,desc[UR6][R2.64]"},
                                                   {"FADD", "R0,R8,R8"},
                                                   {"LDG.E.64", "R10,desc[UR6][R2.64]"},
                                                   {"LDG.E.64", "R12,desc[UR6][R2.64]"}}));
  CHECK(summary.in_flight.loads == 3);
  CHECK(summary.in_flight.bytes == 20);
  // Uniform and predicate registers, and parts of words, are no vector registers.
  CHECK(summary_of(function({{"LDG.E", "R7,desc[UR6][R2.64]"},
                             {"UIADD3", "UR7,UR7,0x1,URZ"},
                             {"S2R", "R0,SR_TID.X"},
                             {"LDG.E", "R8,desc[UR6][R2.64]"}}))
            .in_flight.loads == 2);
}

TEST_CASE("loads of another basic block are not in flight together", "[sass]") {
  // A branch to 0x20 may come from anywhere.
  CHECK(summary_of(function({{"LDG.E", "R7,desc[UR6][R2.64]"},
                             {"LDG.E", "R8,desc[UR6][R2.64]"},
                             {"LDG.E", "R9,desc[UR6][R2.64]"},
                             {"ISETP.NE.AND", "P0,PT,R2,RZ,PT"},
                             {"BRA", "0x20"}}))
            .in_flight.loads == 2);
}

TEST_CASE("innermost loops, spills and copies", "[sass]") {
  const SassSummary summary = summary_of(function({{"STL", "[R1],R4"},
                                                   {"LDG.E", "R3,desc[UR6][R2.64]"},      // 0x10
                                                   {"LDG.E.128", "R4,desc[UR6][R2.64]"},  // 0x20
                                                   {"LDGSTS.E.128", "[R9],desc[UR6][R2.64]"},
                                                   {"BRA", "0x20"},
                                                   {"LDL", "R4,[R1]"},
                                                   {"BRA", "0x10"},
                                                   {"LDG.E", "R3,desc[UR6][R2.64]"},  // 0x70
                                                   {"BRA", "0x70"},
                                                   {"EXIT", ""},
                                                   {"BRA", "0xa0"}}));
  CHECK(summary.spills == 2);
  REQUIRE(summary.loops.size() == 2);
  CHECK(summary.loops[0].first == 0x20);
  CHECK(summary.loops[0].last == 0x40);
  CHECK(summary.loops[0].instructions == 3);
  CHECK(summary.loops[0].loaded_bytes == 16);
  CHECK(summary.loops[0].copied_bytes == 16);
  CHECK(summary.main_loop() == &summary.loops[0]);
}

TEST_CASE("a disassembler that is not there, fails or prints something else", "[sass]") {
  const std::byte code[4] = {};
  const Disassembler none(settings_with("/nowhere/nvdisasm"));
  CHECK_FALSE(none.available());
  CHECK_THROWS_WITH(none.disassemble(code),
                    Catch::Contains("there is no nvdisasm; install the CUDA toolkit or PyPI's "
                                    "nvidia-cuda-nvdisasm, or set PTXGEN_NVDISASM_PATH") &&
                        Catch::Contains("/nowhere/nvdisasm"));
  const TemporaryDirectory folder;
  const Disassembler failing(settings_with(program(folder, "no such architecture", 3)));
  REQUIRE(failing.available());
  CHECK_THROWS_WITH(failing.disassemble(code),
                    Catch::Contains("nvdisasm refuses the machine code: no such architecture"));
  const Disassembler odd(settings_with(program(folder, "{\"a\": 1}", 0)));
  CHECK_THROWS_WITH(odd.disassemble(code), Catch::Contains("nvdisasm prints what cannot be read") &&
                                               Catch::Contains("version 13 or newer is needed"));
  const Disassembler right(settings_with(
      program(folder,
              R"([{"SM": {}}, [{"function-name": "k", "sass-instructions": [{"opcode": "NOP"}, )"
              R"({"predicate": "@P0", "opcode": "BRA", "operands": "0x0"}]}]])",
              0)));
  const std::vector<SassFunction> functions = right.disassemble(code);
  REQUIRE(functions.size() == 1);
  CHECK(functions[0].name == "k");
  REQUIRE(functions[0].instructions.size() == 2);
  CHECK(functions[0].instructions[1].offset == 16);
  CHECK(functions[0].instructions[1].predicate == "@P0");
  CHECK(functions[0].instructions[1].operands == "0x0");
}

TEST_CASE("what ptxas makes of loads is read back", "[sass]") {
  const Settings settings = Settings::from_environment();
  const Assembler assembler(settings);
  const Disassembler disassembler(settings);
  if (!assembler.available()) return test::skip("no assembler: install nvJitLink or ptxas");
  if (!disassembler.available()) {
    return test::skip("no nvdisasm: scripts/setup installs PyPI's nvidia-cuda-nvdisasm");
  }
  AssembleOptions options;
  options.target = "sm_80";
  const Assembly assembly = assembler.assemble(R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a) {
  .reg .b64 %rd<2>;
  .reg .f32 %f<9>;
  ld.param.u64 %rd1, [a];
  cvta.to.global.u64 %rd1, %rd1;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
  ld.global.v2.f32 {%f5, %f6}, [%rd1+16];
  add.f32 %f7, %f1, %f5;
  add.f32 %f8, %f7, %f6;
  st.global.f32 [%rd1], %f8;
  ret;
})",
                                               options);
  const std::vector<SassFunction> functions = disassembler.disassemble(assembly.cubin);
  REQUIRE(functions.size() == 1);
  CHECK(functions[0].name == "k");
  const SassSummary summary = summary_of(functions[0]);
  CHECK(summary.in_flight.loads == 2);
  CHECK(summary.in_flight.bytes <= 24);
  CHECK(summary.in_flight.bytes >= 12);  // the two unused elements may go
  CHECK(summary.spills == 0);
}
