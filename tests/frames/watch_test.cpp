// tests/frames/watch_test.cpp - watches as text, and what they may name
#include <catch2/catch.hpp>

#include "ptxgen/frames.hpp"
#include "ptxgen/support/error.hpp"
#include "tile_kernel.hpp"

using namespace ptxgen;
using frames::parse_watch;
using frames::Watch;
using ptx::Type;

namespace {

std::string watch_error(std::string_view text) {
  try {
    static_cast<void>(parse_watch(text));
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
  return "none";
}

std::string check_error(const std::vector<Watch>& watches) {
  const test::TileLaunch launch;
  try {
    frames::check_watches(launch.program(), "tiles", watches, launch.buffers());
  } catch (const Error& error) {
    return error.message;
  }
  return "none";
}

}  // namespace

TEST_CASE("frames: a watch is read from text and written back") {
  CHECK(parse_watch("%f3") == Watch{"%f3"});
  CHECK(parse_watch("tile[7]") == Watch{"tile", 7, 1});
  CHECK(parse_watch("tile[16..31]:f16") == Watch{"tile", 16, 16, Type::f16});
  CHECK(parse_watch("%r1:s32") == Watch{"%r1", 0, 0, Type::s32});
  CHECK(parse_watch("%v.x[0..31]") == Watch{"%v.x", 0, 32});
  for (const char* text : {"%f3", "tile[7]", "tile[16..31]:f16", "%r1:s32", "y[0..63]:u8"}) {
    CHECK(to_text(parse_watch(text)) == text);
  }
}

TEST_CASE("frames: a watch that is not one is refused") {
  CHECK(watch_error("") ==
        "watch: watch '': expected NAME, NAME[FIRST] or NAME[FIRST..LAST], and perhaps :TYPE, as "
        "%f3[0..7]:f32");
  CHECK(watch_error("y[3") == watch_error("y[3").substr(0));
  CHECK(watch_error("y[3").starts_with("watch: watch 'y[3': expected NAME"));
  CHECK(watch_error("y[a]").starts_with("watch: watch 'y[a]': expected NAME"));
  CHECK(watch_error("y[]").starts_with("watch: watch 'y[]': expected NAME"));
  CHECK(watch_error("y[-1]").starts_with("watch: watch 'y[-1]': expected NAME"));
  CHECK(watch_error("y z").starts_with("watch: watch 'y z': expected NAME"));
  CHECK(watch_error("y[5..4]") == "watch: watch 'y[5..4]': 4 is before 5");
  CHECK(watch_error("y[0..64]") == "watch: watch 'y[0..64]': more than 64 elements");
  CHECK(watch_error("y:f33") ==
        "watch: watch 'y:f33': 'f33' is no type; u8 to u64, s8 to s64, f16, bf16, f32, f64");
}

TEST_CASE("frames: a watch names a register, a shared variable or a buffer") {
  CHECK(check_error({{"%f1"}, {"%r7"}, {"%p2"}, {"tile"}, {"y"}, {"x", 128, 64}}) == "none");
  CHECK(check_error({{"z"}}) ==
        "watch 'z': 'z' is no register of kernel 'tiles', no shared variable (tile) and no buffer "
        "(y, x)");
  CHECK(check_error({{"%r8"}}).starts_with("watch '%r8': '%r8' is no register of kernel"));
  CHECK(check_error({{"%f1", 31, 2}}) == "watch '%f1[31..32]': a warp has lanes 0 to 31");
  CHECK(check_error({{"y", 60, 5}}) == "watch 'y[60..64]': it has 64 elements");
  CHECK(check_error({{"tile", 32, 1, Type::f64}}) == "watch 'tile[32]:f64': it has 32 elements");
  CHECK(check_error({{"tile", 64, 1}}) == "watch 'tile[64]': it has 64 elements");
}

TEST_CASE("frames: values as text and as numbers") {
  CHECK(frames::value_text(0x3fc00000, Type::f32) == "1.5");
  CHECK(frames::value_text(0x7fc00000, Type::f32) == "nan");
  CHECK(frames::value_text(0x3c00, Type::f16) == "1");
  CHECK(frames::value_text(0xbf80, Type::bf16) == "-1");
  CHECK(frames::value_text(0x4000000000000000, Type::f64) == "2");
  CHECK(frames::value_text(0xff, Type::s8) == "-1");
  CHECK(frames::value_text(0xff, Type::u8) == "255");
  CHECK(frames::value_text(0xffffffff, Type::s32) == "-1");
  CHECK(frames::value_text(~std::uint64_t{0}, Type::s64) == "-1");
  CHECK(frames::value_text(1, Type::pred) == "1");
  CHECK(frames::value_text(0xffffffff, Type::b32) == "4294967295");
  CHECK(frames::value_of(0xbfc00000, Type::f32) == -1.5);
  CHECK(frames::value_of(0xfe, Type::s8) == -2);
  CHECK(frames::value_of(7, Type::b64) == 7);
  CHECK(frames::value_of(0x3c00, Type::f16) == 1);
  CHECK(frames::value_of(0xbf80, Type::bf16) == -1);
}
