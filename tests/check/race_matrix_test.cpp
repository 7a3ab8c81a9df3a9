// tests/check/race_matrix_test.cpp - races on the rectangles of wmma.load and wmma.store
#include <catch2/catch.hpp>
#include <string>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

// A block of two warps with a tile of 32 rows of 32 f32. `%base` is the tile plus `warp` bytes for
// each warp.
std::string findings(unsigned warp, const std::string& body) {
  const std::string text =
      ".version 7.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 out)\n.reqntid 64, 1, 1\n{\n"
      ".shared .align 128 .b8 tile[8192];\n.reg .b32 %t, %w, %base, %lane, %own, %s;\n"
      ".reg .f32 %f<8>, %x;\n.reg .b32 %h<8>;\n.reg .b64 %rd<4>;\n"
      "mov.u32 %t, %tid.x;\nshr.u32 %w, %t, 5;\nand.b32 %lane, %t, 31;\nmov.u32 %base, tile;\n"
      "mad.lo.u32 %base, %w, " +
      std::to_string(warp) + ", %base;\n" +
      "mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\n"
      "mov.f32 %f4, %f0;\nmov.f32 %f5, %f0;\nmov.f32 %f6, %f0;\nmov.f32 %f7, %f0;\n" +
      body + "ret;\n}\n";
  std::string all;
  for (const Finding& finding : gates::shared_race(ptx::parse(text))) all += finding.message + "\n";
  return all;
}

std::string store(const std::string& order, const std::string& stride,
                  const std::string& offset = "") {
  return "wmma.store.d.sync.aligned." + order + ".m16n16k16.shared.f32 [%base" + offset +
         "], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}" + stride + ";\n";
}
std::string load(const std::string& order, const std::string& stride,
                 const std::string& offset = "") {
  return "wmma.load.a.sync.aligned." + order +
         ".m16n16k16.shared.f16 {%h0, %h1, %h2, %h3, %h4, "
         "%h5, %h6, %h7}, [%base" +
         offset + "]" + stride + ";\n";
}

}  // namespace

TEST_CASE("wmma.store: rows that are the stride apart, of all elements of a row and no more") {
  // Tiles beside each other: 16 columns of 4 bytes.
  CHECK(findings(64, store("row", ", 32")) == "");
  CHECK(findings(60, store("row", ", 32")) != "");
  CHECK(findings(68, store("row", ", 32")) != "");  // the next row of the other
  // The second warp's rows begin where the first one's rows of the same number end, or earlier.
  CHECK(findings(64, store("row", ", 16")) != "");
  CHECK(findings(1024, store("row", ", 16")) == "");
  CHECK(findings(1020, store("row", ", 16")) != "");
  // Without a stride rows are tight.
  CHECK(findings(1024, store("row", "")) == "");
  CHECK(findings(1020, store("row", "")) != "");
  // Fifteen strides and a row below the first one.
  CHECK(findings(2048, store("row", ", 32")) == "");
  CHECK(findings(1984, store("row", ", 32")) == "");
  CHECK(findings(1920, store("row", ", 32")) != "");
}

TEST_CASE("wmma: column-major matrices, and shapes that are not square") {
  CHECK(findings(64, store("col", ", 32")) == "");
  CHECK(findings(60, store("col", ", 32")) != "");
  const auto wide = [](const std::string& order, unsigned stride) {
    return "wmma.store.d.sync.aligned." + order +
           ".m8n32k16.shared.f32 [%base], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, " +
           std::to_string(stride) + ";\n";
  };
  // 8 rows of 128 bytes; 32 columns of 32 bytes.
  CHECK(findings(1024, wide("row", 32)) == "");
  CHECK(findings(1020, wide("row", 32)) != "");
  CHECK(findings(32, wide("col", 16)) == "");
  CHECK(findings(28, wide("col", 16)) != "");
}

TEST_CASE("wmma: a warp's matrix and its other accesses need bar.warp.sync between them") {
  const std::string read =
      "shl.b32 %own, %lane, 2;\nadd.u32 %own, %base, %own;\nld.shared.f32 %x, [%own];\n";
  CHECK(findings(1024, store("row", ", 16") + read) != "");
  CHECK(findings(1024, store("row", ", 16") + "bar.warp.sync 0xffffffff;\n" + read) == "");
  CHECK(findings(1024, store("row", ", 16") + load("row", ", 16")) != "");
  CHECK(findings(1024,
                 store("row", ", 16") + "bar.warp.sync 0xffffffff;\n" + load("row", ", 16")) == "");
  CHECK(findings(1024, store("row", ", 16") + store("row", ", 16")) != "");
  // Matrices that are read only, or are elsewhere.
  CHECK(findings(0, load("row", ", 16") + load("row", ", 16")) == "");
  CHECK(findings(1024, store("row", ", 16") + load("row", ", 16", "+2048")) == "");
}

TEST_CASE("wmma: a matrix that another warp reads needs a barrier") {
  CHECK(findings(64, store("row", ", 32") + load("row", ", 64", "+32")) != "");
  CHECK(findings(64, store("row", ", 32") + "bar.sync 0;\n" + load("row", ", 64", "+32")) == "");
}

TEST_CASE("wmma: a stride in a register may be any") {
  const std::string from_memory = "ld.param.u64 %rd0, [out];\nld.global.u32 %s, [%rd0];\n";
  CHECK(findings(1024, from_memory + store("row", ", %s")) != "");
}
