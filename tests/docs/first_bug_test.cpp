// tests/docs/first_bug_test.cpp - what examples/first_bug prints, unasked
#include <sys/wait.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

namespace {

struct Output {
  std::string text;
  int status = 0;
};

/// What a shell command prints, without times, thread addresses of the log and the folder of the
/// example: all that two runs on two machines differ in.
Output output_of(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Output output;
  std::array<char, 4096> part;
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), pipe)) {
    output.text.append(part.data(), bytes);
  }
  output.status = WEXITSTATUS(::pclose(pipe));
  const std::string tag = "] [ptxgen] ";
  for (std::size_t at = 0; (at = output.text.find(tag, at)) != std::string::npos;) {
    const std::size_t begin = output.text.rfind('\n', at) + 1;  // npos + 1 is 0
    output.text.erase(begin, at + tag.size() - begin);
    at = begin;
  }
  const std::string file = "/first_bug.cpp:";
  for (std::size_t at = 0; (at = output.text.find(file, at)) != std::string::npos;) {
    const std::size_t begin = output.text.find_last_of(" \n", at) + 1;
    output.text.erase(begin, at + 1 - begin);
    at = begin;
  }
  return output;
}

constexpr const char* kUninitialized =
    R"(first_bug.cpp:39: error: thread reads 4 bytes at offset 0xfc of shared memory, byte 252 of shared variable 'tile' (256 bytes), which was never written [uninitialized-read]
    ld.shared.f32 %f1, [%r4];
    by thread (0,0,0) of block (0,0,0)
    write it first; if another thread writes it, put a barrier between the write and the read
    in a launch of kernel 'reverse', grid (1,1,1), block (64,1,1)
)";

constexpr const char* kRace =
    R"([error] first_bug.cpp:23: error: thread (32,0,0) of block (0,0,0) reads 4 bytes at 0x10000000600 (byte 0 of allocation 2), which thread (31,0,0) wrote at first_bug.cpp:24; nothing orders the two [global-race]
    ld.global.f32 %f1, [%rd1];
    by thread (32,0,0) of block (0,0,0)
    the other: thread (31,0,0) of block (0,0,0), st.global.f32 [%rd1], %f2; at first_bug.cpp:24
    found 32 times; this is the first
    put bar.sync 0 between them
    in a launch of kernel 'total', grid (1,1,1), block (64,1,1)
)";

const std::string kPlain = "PTXGEN_LOG= PTXGEN_CACHE=memory PTXGEN_STRICT= ";
const std::string kStrict = "PTXGEN_LOG= PTXGEN_CACHE=memory PTXGEN_STRICT=1 ";

}  // namespace

TEST_CASE("the first page: what is wrong is told without being asked for") {
  const Output told = output_of(kPlain + FIRST_BUG " 2>&1 >/dev/null");
  CHECK(told.status == 0);
  const std::string last = "[error] " + std::string(kUninitialized);
  INFO(told.text);
  REQUIRE(told.text.size() >= last.size());
  CHECK(told.text.substr(told.text.size() - last.size()) == last);
  CHECK(told.text.starts_with(kRace));
}

TEST_CASE("the first page: the program itself notices nothing, unless it is strict") {
  const Output plain = output_of(kPlain + FIRST_BUG " 2>/dev/null");
  CHECK(plain.status == 0);
  CHECK(plain.text ==
        "total: 2, it should be 64\nreverse: the first element is 0, it should be 1\n");
  const Output strict = output_of(kStrict + FIRST_BUG " 2>&1 >/dev/null");
  CHECK(strict.status == 1);
  CHECK(strict.text.find("thrown because PTXGEN_STRICT is 1 [") != std::string::npos);
}
