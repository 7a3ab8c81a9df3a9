// tests/fuzz/parse_fuzzer.cpp - parse, print, parse again, verify
//
// The text must be refused with a syntax error, or survive being printed and read again. Its second
// half is also read as raw statements in the body of a function, which must leave no trace if it is
// refused.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"

namespace {

namespace ptx = ptxgen::ptx;

void require(bool holds, std::string_view what, std::string_view detail) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

void check_error(const ptxgen::Error& error) {
  require(error.code == "syntax" && error.line > 0 && error.column > 0 && !error.message.empty() &&
              !error.excerpt.empty(),
          "a syntax error names its place", error.what());
}

void round_trip(const ptx::Module& module) {
  const std::string printed = ptx::print(module);
  ptx::Module again;
  try {
    again = ptx::parse(printed);
  } catch (const ptxgen::Error& error) {
    require(false, "what is printed can be read", error.what() + ("\n" + printed));
  }
  const std::string difference = ptx::difference(module, again);
  require(difference.empty(), "print and parse change nothing", difference + "\n" + printed);
  require(ptx::print(again) == printed, "printing is stable", printed);
  (void)ptx::verify(module);
}

constexpr std::string_view kHost =
    ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 g;\n.func helper;\n"
    ".entry k(.param .u64 p)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"
    "bra END;\n{\n.reg .b32 inner;\nmov.u32 inner, 1;\n}\nEND: ret;\n}\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    round_trip(ptx::parse(text, "fuzzed"));
  } catch (const ptxgen::Error& error) {
    check_error(error);
  }

  ptx::Module host = ptx::parse(kHost);
  const std::string before = ptx::print(host);
  const std::size_t names = host.names.size();
  const std::size_t symbols = host.symbols.size();
  try {
    const std::size_t body = text.find('{');
    ptx::parse_into(host, 1, body == std::string_view::npos ? text : text.substr(body + 1));
    (void)ptx::print(host);
    (void)ptx::verify(host);
  } catch (const ptxgen::Error& error) {
    check_error(error);
    require(
        ptx::print(host) == before && host.names.size() == names && host.symbols.size() == symbols,
        "refused statements leave no trace", error.what());
  }
  return 0;
}
