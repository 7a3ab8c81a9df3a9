// tests/runtime/assembler_test.cpp - assembling with what this machine has
#include "ptxgen/runtime/assemble/assembler.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <thread>
#include <tuple>

#include "ptxgen/support/error.hpp"
#include "runtime/samples.hpp"
#include "support/cubin.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// The tools of this machine that need no GPU.
std::vector<AssemblerTool> tools_here(const Assembler& assembler) {
  std::vector<AssemblerTool> tools;
  for (const AssemblerFinding& finding : assembler.tools()) {
    if (finding.found && finding.tool != AssemblerTool::Driver) tools.push_back(finding.tool);
  }
  return tools;
}

/// Runs a check with each tool that is here, and says which ones are not.
void with_each_tool(const std::function<void(const Assembler&, AssemblerTool)>& check) {
  const Assembler assembler(Settings::from_environment());
  const std::vector<AssemblerTool> tools = tools_here(assembler);
  if (tools.empty()) return skip("neither nvJitLink nor ptxas found");
  for (const AssemblerTool tool : {AssemblerTool::NvJitLink, AssemblerTool::Ptxas}) {
    if (std::find(tools.begin(), tools.end(), tool) == tools.end()) {
      skip_part(std::string(to_string(tool)) + " not found");
      continue;
    }
    INFO("with " << to_string(tool));
    check(assembler, tool);
  }
}

Error error_of(const Assembler& assembler, const std::string& ptx, const AssembleOptions& options) {
  try {
    (void)assembler.assemble(ptx, options);
  } catch (const Error& error) {
    return error;
  }
  FAIL("assembled without an error");
  return Error(Stage::Assemble, "", "");
}

}  // namespace

TEST_CASE("good PTX becomes machine code with its resources", "[assembler]") {
  with_each_tool([](const Assembler& assembler, AssemblerTool tool) {
    const Assembly assembly = assembler.assemble(two_kernels(), for_target("sm_89", tool));
    CHECK(assembly.tool == tool);
    CHECK_FALSE(assembly.tool_version.empty());
    CHECK(assembly.log.find("Compiling entry function") != std::string::npos);
    REQUIRE(assembly.kernels.size() == 2);
    const KernelResources& plain = assembly.kernels[0];
    const KernelResources& stage = assembly.kernels[1];
    CHECK(plain.name == "plain");
    CHECK(stage.name == "stage");
    CHECK(plain.registers > 0);
    CHECK(stage.registers > 0);
    CHECK(stage.shared == 512);
    CHECK(plain.shared == 0);
    CHECK(stage.barriers == 1);
    CHECK(plain.barriers == 0);
    // Bank 0 of sm_89 has 352 bytes before the parameters.
    CHECK(plain.constant == 352 + 8);
    CHECK(stage.constant == 352 + 12);
    CHECK(assembly.constant == 352 + 12 + 64);
    CHECK(assembly.shared == 512);
    CHECK(assembly.registers == std::max(plain.registers, stage.registers));
    CHECK(assembly.spill_stores == 0);
    CHECK(assembly.spill_loads == 0);
    const auto code = text_sections(assembly.cubin);
    CHECK(code.size() == 2);
    CHECK(code.count(".text.stage") == 1);
  });
}

TEST_CASE("spills are counted", "[assembler]") {
  // 100 values that live across a barrier in a kernel that may use 32 registers.
  std::string ptx =
      ".version 7.0\n.target sm_75\n.address_size 64\n"
      ".visible .entry spiller(.param .u64 p)\n.maxnreg 32\n{\n"
      "  .reg .f32 %f<101>; .reg .b64 %rd<2>;\n  ld.param.u64 %rd0, [p];\n";
  for (int i = 0; i < 100; ++i) {
    ptx += "  ld.volatile.global.f32 %f" + std::to_string(i) + ", [%rd0+" + std::to_string(4 * i) +
           "];\n";
  }
  ptx += "  bar.sync 0;\n";
  for (int i = 0; i < 100; ++i) {
    ptx += "  st.volatile.global.f32 [%rd0+" + std::to_string(4 * i) + "], %f" +
           std::to_string(99 - i) + ";\n";
  }
  ptx += "  ret;\n}\n";
  with_each_tool([&ptx](const Assembler& assembler, AssemblerTool tool) {
    const Assembly assembly = assembler.assemble(ptx, for_target("sm_80", tool));
    REQUIRE(assembly.kernels.size() == 1);
    CHECK(assembly.registers == 32);
    CHECK(assembly.spill_stores >= 4 * 60);
    CHECK(assembly.spill_loads >= 4 * 60);
    CHECK(assembly.kernels[0].spill_stores == assembly.spill_stores);
    CHECK(assembly.kernels[0].spill_loads == assembly.spill_loads);
    CHECK(assembly.kernels[0].stack >= assembly.spill_stores);
  });
}

TEST_CASE("all variants of targets are understood", "[assembler]") {
  const std::vector<std::tuple<std::string, std::string>> targets = {
      {"sm_75", "6.3"},  {"sm_80", "7.0"},   {"sm_87", "7.4"},   {"sm_90", "7.8"},
      {"sm_90a", "8.0"}, {"sm_100", "8.6"},  {"sm_100a", "8.6"}, {"sm_100f", "8.8"},
      {"sm_120", "8.7"}, {"sm_120a", "8.7"}, {"sm_121a", "8.8"},
  };
  with_each_tool([&targets](const Assembler& assembler, AssemblerTool tool) {
    for (const auto& [target, version] : targets) {
      INFO(target);
      try {
        const Assembly assembly =
            assembler.assemble(two_kernels(target, version), for_target(target, tool));
        CHECK(assembly.registers > 0);
        // From sm_100 on the logs no longer tell; the cubin does.
        CHECK(assembly.constant > 64 + 12);
      } catch (const Error& error) {
        // An older release than 12.9 does not have them all.
        if (error.code != "unknown-target") throw;
        skip_part(std::string(to_string(tool)) + " does not know " + target);
      }
    }
  });
}

TEST_CASE("rejected PTX: the line, the tool's words and the log", "[assembler]") {
  with_each_tool([](const Assembler& assembler, AssemblerTool tool) {
    AssembleOptions options = for_target("sm_89", tool);
    options.file = "bad.ptx";
    const Error error = error_of(assembler, bad_kernel(), options);
    CHECK(error.stage == Stage::Assemble);
    CHECK(error.code == "rejected");
    CHECK(error.line == 10);
    CHECK(error.file == "bad.ptx");
    CHECK(error.target == "sm_89");
    CHECK(error.driver_status != 0);
    CHECK(error.message.rfind(std::string(to_string(tool)) + " ", 0) == 0);
    CHECK(error.message.find(" rejects line 10 for sm_89: Unknown modifier '.f33'") !=
          std::string::npos);
    CHECK(error.excerpt ==
          "   8 |   .shared .align 4 .b8 tile[512];\n"
          "   9 |   ld.param.u64 %rd0, [p];\n"
          "> 10 |   add.rn.f33 %r0, %r9, 1;\n"
          "  11 |   st.shared.u32 [tile], %r0;\n"
          "  12 |   bar.sync 0;");
    CHECK(error.log.find("Unknown symbol '%r9'") != std::string::npos);
    CHECK(std::string(error.what()).find("bad.ptx:10: error: ") == 0);
    // Nothing of this machine's temporary folders may show.
    CHECK(error.log.find("/tmp") == std::string::npos);
  });
}

TEST_CASE("rejected PTX of other kinds", "[assembler]") {
  with_each_tool([](const Assembler& assembler, AssemblerTool tool) {
    const AssembleOptions options = for_target("sm_75", tool);
    SECTION(std::string(to_string(tool)) + ": a newer .version than the tool knows") {
      const Error error = error_of(assembler, two_kernels("sm_75", "99.0"), options);
      CHECK(error.code == "rejected");
      CHECK(error.line == 1);
      CHECK(error.message.find("Unsupported .version 99.0") != std::string::npos);
      CHECK(error.message.find("; write an older .version or install a newer " +
                               std::string(to_string(tool))) != std::string::npos);
    }
    SECTION(std::string(to_string(tool)) + ": a .target above the one asked for") {
      const Error error = error_of(assembler, two_kernels("sm_80", "7.0"), options);
      CHECK(error.code == "rejected");
      CHECK(error.message.find("assemble for the module's own .target or a later one") !=
            std::string::npos);
    }
    SECTION(std::string(to_string(tool)) + ": a function that nothing defines") {
      std::string ptx = two_kernels();
      ptx.insert(ptx.find(".const"), ".extern .func absent_function;\n");
      ptx.insert(ptx.find("bar.sync"), "call absent_function;\n  ");
      const Error error = error_of(assembler, ptx, options);
      CHECK(error.code == "rejected");
      CHECK(error.message.find("absent_function") != std::string::npos);
      // Once nvJitLink 13.0 has met an unknown .version, it calls this one a success ever after.
      (void)error_of(assembler, two_kernels("sm_75", "99.0"), options);
      CHECK(error_of(assembler, ptx, options).code == "rejected");
    }
    SECTION(std::string(to_string(tool)) + ": no PTX at all") {
      CHECK(error_of(assembler, "", options).code == "rejected");
      CHECK(error_of(assembler, "hello", options).code == "rejected");
    }
  });
}

TEST_CASE("a rejection changes nothing for what comes after it", "[assembler]") {
  with_each_tool([](const Assembler& assembler, AssemblerTool tool) {
    const AssembleOptions options = for_target("sm_75", tool);
    const Assembly before = assembler.assemble(two_kernels(), options);
    std::string cut = two_kernels();
    cut.resize(cut.size() / 2);
    for (const std::string& bad : {two_kernels("sm_75", "99.0"), two_kernels("sm_80", "7.0"),
                                   std::string("hello"), std::string(), cut, bad_kernel()}) {
      (void)error_of(assembler, bad, options);
      const Assembly after = assembler.assemble(two_kernels(), options);
      CHECK(after.cubin == before.cubin);
      CHECK(after.registers == before.registers);
      CHECK(error_of(assembler, bad_kernel(), options).line == 10);
    }
  });
}

TEST_CASE("a target that no tool knows", "[assembler]") {
  with_each_tool([](const Assembler& assembler, AssemblerTool tool) {
    const Error error = error_of(assembler, two_kernels(), for_target("sm_999", tool));
    CHECK(error.code == "unknown-target");
    CHECK(error.message.find(" does not support the target sm_999; choose another target or "
                             "install a CUDA release that supports it") != std::string::npos);
    CHECK_FALSE(error.log.empty());
  });
  const Assembler assembler(Settings::from_environment());
  const std::vector<AssemblerTool> tools = tools_here(assembler);
  if (tools.size() < 2) return skip_part("only one tool to try in turn");
  const Error error = error_of(assembler, two_kernels(), for_target("sm_999"));
  CHECK(error.code == "unknown-target");
  REQUIRE_FALSE(error.causes.empty());
  CHECK(error.causes[0].message.rfind("ptxas", 0) == 0);
}

TEST_CASE("levels of optimization reach the tool", "[assembler]") {
  with_each_tool([](const Assembler& assembler, AssemblerTool tool) {
    AssembleOptions options = for_target("sm_80", tool);
    const Assembly best = assembler.assemble(two_kernels(), options);
    for (const unsigned level : {0U, 1U, 2U}) {
      options.optimization = level;
      const Assembly assembly = assembler.assemble(two_kernels(), options);
      CHECK(assembly.kernels.size() == 2);
      if (level == 0) CHECK_FALSE(same_code(best.cubin, assembly.cubin));
    }
    options.line_info = true;
    CHECK(assembler.assemble(two_kernels(), options).kernels.size() == 2);
    options.optimization = 4;
    const Error error = error_of(assembler, two_kernels(), options);
    CHECK(error.code == "bad-option");
    CHECK(error.message == "optimization level 4 does not exist; levels are 0 to 3");
  });
}

TEST_CASE("a limit of registers reaches the tool", "[assembler]") {
  // 48 sums that are all needed at the end, so that they spill when they may not have registers.
  std::string ptx =
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 p)\n{\n"
      ".reg .u64 %rd<2>;\n.reg .f32 %f<100>;\nld.param.u64 %rd1, [p];\n";
  for (int i = 0; i < 48; ++i) {
    const std::string n = std::to_string(i);
    ptx += "ld.volatile.global.f32 %f" + n + ", [%rd1+" + std::to_string(4 * i) + "];\n";
  }
  for (int i = 47; i >= 0; --i) {
    const std::string n = std::to_string(i);
    ptx += "st.volatile.global.f32 [%rd1+" + std::to_string(4 * i) + "], %f" + n + ";\n";
  }
  ptx += "ret;\n}\n";
  with_each_tool([&](const Assembler& assembler, AssemblerTool tool) {
    AssembleOptions options = for_target("sm_80", tool);
    CHECK(assembler.assemble(ptx, options).registers > 48);
    options.max_registers = 32;
    const Assembly limited = assembler.assemble(ptx, options);
    CHECK(limited.registers <= 32);
    CHECK(limited.spill_stores > 0);
  });
}

TEST_CASE("the first tool is named with its version", "[assembler]") {
  const Assembler assembler(Settings::from_environment());
  const AssemblerFinding first = assembler.first_tool();
  if (!first.found) return skip("no assembler found: install the CUDA toolkit");
  const AssembleOptions options = for_target("sm_80", first.tool);
  CHECK(assembler.assemble(two_kernels(), options).tool_version == first.version);
  CHECK_FALSE(first.version.empty());
  Settings nothing;
  nothing.search_usual_places = false;
  CHECK_FALSE(Assembler(nothing).first_tool().found);
}

TEST_CASE("the same PTX gives the same cubin from several threads", "[assembler]") {
  with_each_tool([](const Assembler& assembler, AssemblerTool tool) {
    const Assembly expected = assembler.assemble(two_kernels(), for_target("sm_89", tool));
    const int rounds = tool == AssemblerTool::NvJitLink ? count(40, 400) : count(4, 40);
    std::vector<std::string> trouble(3);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < trouble.size(); ++t) {
      threads.emplace_back([&, t] {
        try {
          for (int i = 0; i < rounds; ++i) {
            // Every third one is refused, so that good and bad ones meet.
            if (i % 3 == 2) {
              try {
                (void)assembler.assemble(bad_kernel(), for_target("sm_89", tool));
                trouble[t] = "bad PTX was assembled";
              } catch (const Error& error) {
                if (error.line != 10) trouble[t] = error.what();
              }
              continue;
            }
            const Assembly assembly = assembler.assemble(two_kernels(), for_target("sm_89", tool));
            if (assembly.cubin != expected.cubin) trouble[t] = "another cubin";
            if (assembly.registers != expected.registers) trouble[t] = "other registers";
          }
        } catch (const std::exception& error) {
          trouble[t] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : trouble) CHECK(text == "");
  });
}

TEST_CASE("names that are not targets never reach a tool", "[assembler]") {
  const Assembler assembler(bare_machine());
  for (const char* target : {"", "89", "sm_", "sm_8x", "sm_90b", "sm_90aa", "compute_89",
                             "sm_89 -o /x", "sm_123456", "SM_89"}) {
    INFO(target);
    const Error error = error_of(assembler, two_kernels(), for_target(target));
    CHECK(error.code == "bad-target");
    CHECK(error.message == "\"" + std::string(target) +
                               "\" is not a target; write sm_ and a number, then a or f where the "
                               "architecture has such a variant, for example sm_90a");
  }
}

TEST_CASE("a zero byte in the text is refused, not read as its end", "[assembler]") {
  const Assembler assembler(bare_machine());
  std::string ptx = two_kernels();
  ptx[ptx.find("bar.sync")] = '\0';
  const Error error = error_of(assembler, ptx, for_target("sm_89"));
  CHECK(error.code == "rejected");
  CHECK(error.line == 12);
  CHECK(error.message == "line 12 has a zero byte, which PTX does not allow");
}

TEST_CASE("with nothing to assemble with, the message says what to do", "[assembler]") {
  Settings settings = bare_machine();
  settings.nvjitlink_path = "/nowhere/libnvJitLink.so.13";
  settings.ptxas_path = "/etc/passwd";
  const Assembler assembler(settings);
  CHECK_FALSE(assembler.available());
  const Error error = error_of(assembler, two_kernels(), for_target("sm_89"));
  CHECK(error.stage == Stage::Assemble);
  CHECK(error.code == "no-assembler");
  CHECK(error.message ==
        "no assembler found for sm_89 (searched for nvJitLink, ptxas, driver); install the CUDA "
        "toolkit's nvJitLink library or its ptxas program, or set PTXGEN_NVJITLINK_PATH, "
        "PTXGEN_PTXAS_PATH or PTXGEN_CUDA_PATH to their path");
  CHECK(error.log ==
        "nvJitLink was searched for in\n"
        "  /nowhere/libnvJitLink.so.13 (PTXGEN_NVJITLINK_PATH): no such file\n"
        "ptxas was searched for in\n"
        "  /etc/passwd (PTXGEN_PTXAS_PATH): not an executable file\n"
        "driver was searched for in\n"
        "  the usual places: not searched, as the settings ask");

  const Error ptxas = error_of(assembler, two_kernels(), for_target("sm_89", AssemblerTool::Ptxas));
  CHECK(ptxas.message ==
        "no assembler found for sm_89 (searched for ptxas); install the CUDA toolkit's ptxas "
        "program, or set PTXGEN_PTXAS_PATH or PTXGEN_CUDA_PATH to its path");
}

TEST_CASE("a library that is not nvJitLink is not taken for it", "[assembler]") {
  Settings settings = bare_machine();
  settings.nvjitlink_path = FAKE_LIBCUDA_GPU;
  const AssemblerFinding finding = Assembler(settings).tools()[0];
  CHECK(finding.tool == AssemblerTool::NvJitLink);
  CHECK_FALSE(finding.found);
  CHECK(finding.why_not == std::string(FAKE_LIBCUDA_GPU) + ": has no function nvJitLinkCreate");
}

namespace {

/// An assembler whose ptxas is a shell script.
Assembler with_script(const TemporaryDirectory& folder, const std::string& body) {
  const std::string file = folder.file("ptxas");
  write_file(file,
             "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release 9.9, V9.9.1'; exit; fi\n" +
                 body + "\n");
  REQUIRE(std::system(("chmod +x " + file).c_str()) == 0);
  Settings settings = bare_machine();
  settings.ptxas_path = folder.path();
  return Assembler(settings);
}

}  // namespace

TEST_CASE("what can go wrong with the ptxas program", "[assembler]") {
  const TemporaryDirectory folder;
  AssembleOptions options = for_target("sm_89");
  SECTION("it takes too long") {
    options.timeout_ms = 100;
    const Error error = error_of(with_script(folder, "sleep 60"), two_kernels(), options);
    CHECK(error.code == "timeout");
    CHECK(error.message ==
          "ptxas 9.9.1 was stopped after 100 ms; raise timeout_ms or lower the optimization level");
  }
  SECTION("it crashes") {
    const Error error =
        error_of(with_script(folder, "echo half; kill -SEGV $$"), two_kernels(), options);
    CHECK(error.code == "tool-failed");
    CHECK(error.message == "ptxas 9.9.1 failed to assemble: ended by signal 11");
    CHECK(error.driver_status == 11);
    CHECK(error.log == "half\n");
  }
  SECTION("it fails without a reason") {
    const Error error = error_of(with_script(folder, "exit 4"), two_kernels(), options);
    CHECK(error.code == "tool-failed");
    CHECK(error.message == "ptxas 9.9.1 failed to assemble: exit status 4");
  }
  SECTION("it writes something that is no cubin") {
    const Error error =
        error_of(with_script(folder, "echo text > output.cubin"), two_kernels(), options);
    CHECK(error.code == "tool-failed");
    CHECK(error.message.find("not a readable 64-bit ELF file") != std::string::npos);
  }
  SECTION("its log is long: nothing is cut, the first complaint with a line counts") {
    const Error error =
        error_of(with_script(folder,
                             "i=0; while [ $i -lt 4000 ]; do echo \"ptxas input.ptx, line 3; "
                             "warning : Something worth a line\"; i=$((i+1)); done >&2\n"
                             "echo 'ptxas fatal   : Too bad' >&2\n"
                             "echo 'ptxas input.ptx, line 6; error   : Here it is' >&2; exit 1"),
                 two_kernels(), options);
    CHECK(error.line == 6);
    CHECK(error.message == "ptxas 9.9.1 rejects line 6 for sm_89: Here it is");
    CHECK(error.log.size() > 4000 * 50);
  }
}

TEST_CASE("of two tools, the machine code with the fewest registers is taken", "[assembler]") {
  const Assembler assembler(Settings::from_environment());
  const std::vector<AssemblerTool> tools = tools_here(assembler);
  if (tools.size() < 2) return skip("nvJitLink and ptxas are not both here");
  const Assembly best =
      assembler.assemble(two_kernels(), for_target("sm_90", AssemblerTool::FewestRegisters));
  REQUIRE(best.compared.size() == tools.size());
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Assembly alone = assembler.assemble(two_kernels(), for_target("sm_90", tools[i]));
    CHECK(best.compared[i].tool == tools[i]);
    CHECK(best.compared[i].tool_version == alone.tool_version);
    CHECK(best.compared[i].registers == alone.registers);
    CHECK(best.registers <= alone.registers);
    if (best.tool == tools[i]) CHECK(best.cubin == alone.cubin);
  }
}

TEST_CASE("a tool that fails leaves the choice to the other", "[assembler]") {
  const TemporaryDirectory folder;
  const AssembleOptions options = for_target("sm_89", AssemblerTool::FewestRegisters);
  // None but a ptxas that breaks: its own complaint.
  CHECK(error_of(with_script(folder, "exit 4"), two_kernels(), options).code == "tool-failed");
  CHECK(error_of(Assembler(bare_machine()), two_kernels(), options).code == "no-assembler");
  Settings settings = Settings::from_environment();
  settings.ptxas_path = folder.path();
  const Assembler assembler(settings);
  if (!assembler.tools().front().found) return skip_part("nvJitLink is not here");
  const Assembly result = assembler.assemble(two_kernels(), options);
  CHECK(result.tool == AssemblerTool::NvJitLink);
  CHECK(result.compared.size() == 1);
}
