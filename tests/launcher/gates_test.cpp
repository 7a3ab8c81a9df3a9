// tests/launcher/gates_test.cpp - passes and gates before every load
#include <catch2/catch.hpp>
#include <set>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "rig.hpp"
#include "runtime/launch/launcher_state.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr std::string_view kTooManyThreads =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".visible .entry k() .reqntid 2048 { ret; }\n";
constexpr std::string_view kDoubtful =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".visible .entry k() .maxnreg 256 { ret; }\n";
constexpr std::string_view kUnreadable =
    ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() { ret }\n";

}  // namespace

TEST_CASE("PTX that a gate refuses does not reach the driver") {
  const Rig rig;
  const Error error =
      error_of([&] { (void)Module::load(rig.context, kTooManyThreads, {}, "mine.ptx"); });
  CHECK(error.stage == Stage::Verify);
  CHECK(error.code == "tile-limits");
  CHECK(error.kernel == "k");
  CHECK(error.file == "mine.ptx");
  CHECK(error.line == 4);
  CHECK(error.message ==
        "kernel 'k' .reqntid asks for 2048 threads in x; rule: a block has at most 1024 threads in "
        "x; cure: make it at most 1024");
  CHECK(error.excerpt.find("> 4 | .visible .entry k() .reqntid 2048 { ret; }") !=
        std::string::npos);
  CHECK(error.log.find("mine.ptx:4: error: kernel 'k' .reqntid asks for 2048") == 0);
  // The launcher's gates are the same.
  const Error again = error_of([&] { (void)rig.launcher.load(kTooManyThreads, "k", "mine.ptx"); });
  CHECK(again.code == error.code);
  CHECK(again.message == error.message);
  CHECK(again.line == 4);
}

TEST_CASE("gates name what built kernels do") {
  const Rig rig;
  // An instruction is named with its line of the printed text and with its call.
  ptx::Module wrong = GemvStrided{}.build(ptx::target("sm_75")).module();
  ptx::Function& function = wrong.functions[0];
  const ptx::Operand wide = function.operands_of(function.body[0])[0];
  CHECK(ptx::bits(function.type_of(wide.as_register())) == 64);
  for (const ptx::Instruction& statement : function.body) {
    if (statement.is(ptx::Op::fma_f32)) function.operands_of(statement)[1] = wide;
  }
  const Error illegal = error_of([&] { (void)Module::load(rig.context, wrong); });
  CHECK(illegal.stage == Stage::Verify);
  CHECK(illegal.line > 10);
  CHECK(illegal.site.known());
  CHECK(illegal.excerpt.find("> " + std::to_string(illegal.line) + " | ") != std::string::npos);
}

TEST_CASE("gates can be turned off, which is told") {
  const LogOfTest log;
  const Rig rig;
  (void)Module::load(rig.context, kTooManyThreads, {.gates = false}, "mine.ptx");
  CHECK(log.text() == "the gates are off: mine.ptx is loaded unchecked\n");
}

TEST_CASE("what a gate only doubts is loaded and told") {
  const LogOfTest log;
  const Rig rig;
  (void)Module::load(rig.context, kDoubtful, {}, "mine.ptx");
  const std::string expected =
      " is loaded with warnings:\n"
      "mine.ptx:4: warning: kernel 'k' .maxnreg asks for 256 registers [tile-limits]\n"
      "    rule: a thread has at most 255 registers\n"
      "    cure: make it at most 255: an assembler ignores a larger bound\n\n";
  CHECK(log.text() == "mine.ptx" + expected);
  (void)rig.launcher.load(kDoubtful, "k", "mine.ptx");
  CHECK(log.text() == "mine.ptx" + expected + "kernel k" + expected);
}

TEST_CASE("text that cannot be read here goes to the driver, which is told") {
  const LogOfTest log;
  const Rig rig;
  const Error error =
      error_of([&] { (void)Module::load(rig.context, kUnreadable, {}, "mine.ptx"); });
  CHECK(error.stage == Stage::Load);
  CHECK(error.code == "rejected");
  CHECK(log.text().find("mine.ptx goes to the driver unchecked, because ptxgen cannot parse it: "
                        "expected") == 0);
}

TEST_CASE("passes and gates are in a module's key") {
  std::set<std::uint64_t> keys;
  const optimize::PassOptions plain;
  const auto differs = [&](const auto& change, bool gates = true) {
    optimize::PassOptions options = plain;
    change(options);
    for (const bool programmatic : {false, true}) {
      CHECK(keys.insert(key_of_passes(options, gates, programmatic)).second);
    }
  };
  differs([](auto&) {});
  differs([](auto&) {}, false);
  differs([](auto& options) { options.passes = {"none"}; });
  differs([](auto& options) { options.passes = {"fma_fusion", "dead_code"}; });
  differs([](auto& options) { options.passes = {"dead_code", "fma_fusion"}; });
  differs([](auto& options) { options.contract = false; });
  differs([](auto& options) { options.split_threshold = 8; });
  differs([](auto& options) { options.growth_limit = 2; });
  // What changes no kernel is no part of it.
  optimize::PassOptions words = plain;
  words.explain = words.dump = true;
  words.verify = false;
  CHECK(key_of_passes(words, true, false) == key_of_passes(plain, true, false));
}

TEST_CASE("passes are chosen by options, then by settings") {
  LauncherOptions options = plain_options();
  options.passes.passes = {"no_such_pass"};
  const Error error = error_of([&] { const Rig rig(options); });
  CHECK(error.stage == Stage::Optimize);
  CHECK(error.code == "unknown-pass");
  options.passes.passes = {"default"};
  options.settings.passes = "dead_code,no_such_pass";
  CHECK(error_of([&] { const Rig rig(options); }).message.find("'no_such_pass'") !=
        std::string::npos);

  const auto report = [](const LauncherOptions& how) {
    std::string text;
    set_default_log(Log(LogLevel::Debug, {[](void* user, LogLevel, std::string_view message) {
                                            if (message.starts_with("passes on kernel vadd:")) {
                                              *static_cast<std::string*>(user) += message;
                                            }
                                          },
                                          &text, nullptr}));
    {
      Rig rig(how);
      const Buffer<f32> memory(rig.context, 100);
      rig.launcher.launch(Vadd{.n = 100}, {.c = memory, .a = memory, .b = memory}, rig.stream);
      rig.stream.synchronize();
      CHECK(rig.launcher.stages("vadd").of("passes") > 0);
      // In memory already: neither passes nor gates run again.
      rig.launcher.launch(Vadd{.n = 100}, {.c = memory, .a = memory, .b = memory}, rig.stream);
      rig.stream.synchronize();
    }
    reset_default_log();
    return text;
  };
  const std::string all = report(plain_options());
  CHECK(all.find("passes on kernel vadd:\ndead_code: ") == 0);
  CHECK(all.find("passes on kernel vadd:", 1) == std::string::npos);
  for (const optimize::PassGroup& group : optimize::pass_groups()) {
    if (group.name != "default") continue;
    for (const std::string_view pass : group.passes)
      CHECK(("\n" + all).find("\n" + std::string(pass) + ": ") != std::string::npos);
  }
  options.settings.passes = "dead_code,branch_simplify";
  const std::string some = report(options);
  CHECK(some.find("passes on kernel vadd:\ndead_code: ") == 0);
  CHECK(some.find("fma_fusion") == std::string::npos);
  options.passes.passes = {"none"};
  CHECK(report(options) == "passes on kernel vadd:\n");
}
