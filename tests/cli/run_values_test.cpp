// tests/cli/run_values_test.cpp - ptxgen run: typed inputs, printed results, names, paths
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

// y[i] = x[i] + x[i] with one block; `type` and its size, a name for the entry.
std::string doubling(const std::string& type, const std::string& bytes,
                     const std::string& entry = "twice", const std::string& add = "add") {
  const std::string reg = type == "f16" ? "b16" : type;
  return ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry " + entry +
         "(.param .u64 y, .param .u64 x)\n{\n.reg ." + reg + " %v<3>;\n.reg .b32 %r<2>;\n" +
         ".reg .b64 %rd<6>;\nld.param.u64 %rd1, [y];\nld.param.u64 %rd2, [x];\n" +
         "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, " + bytes +
         ";\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\nld.global." + reg +
         " %v1, [%rd5];\n" + add + "." + type + " %v2, %v1, %v1;\nst.global." + reg +
         " [%rd4], %v2;\nret;\n}\n";
}

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  text += static_cast<char>(header.size());
  text += '\0';
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

struct RunPlace : Place {
  SubprocessResult run(const std::string& ptx, const std::string& block,
                       const std::vector<std::string>& arguments,
                       const std::vector<std::string>& more = {}) const {
    std::vector<std::string> call = {"run", ptx, "--grid", "1", "--block", block, "--arg"};
    call.insert(call.end(), arguments.begin(), arguments.end());
    call.insert(call.end(), more.begin(), more.end());
    return ptxgen_program(call);
  }
};

}  // namespace

TEST_CASE("print shows shape, type, head and tail") {
  const RunPlace place;
  const std::string f32 = place.with("f32.ptx", doubling("f32", "4"));
  const std::string s32 = place.with("s32.ptx", doubling("s32", "4"));
  const std::string f16 = place.with("f16.ptx", doubling("f16", "2"));
  auto result = place.run(f32, "4", {"print:f32:4", "iota:f32:4:1:0.25"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out == "y: f32[4]\n  2 2.5 3 3.5\n");
  CHECK(place.run(s32, "100", {"print:s32:100", "iota:s32:100:-2"}).out ==
        "y: s32[100]\n  -4 -2 0 2 4 6 ... 184 186 188 190 192 194\n");
  CHECK(place.run(f16, "2", {"print:f16:2", "fill:f16:2:0.1"}).out ==
        "y: f16[2]\n  0.19995 0.19995\n");
  CHECK(place.run(s32, "16", {"print:s32:8x2", "iota:s32:16"}).out ==
        "y: s32[8,2]\n  [0] 0 2\n  [1] 4 6\n  [2] 8 10\n  ...\n  [5] 20 22\n  [6] 24 26\n"
        "  [7] 28 30\n");
  CHECK(place.run(s32, "8", {"print:s32:2x2x2", "iota:s32:8"}).out ==
        "y: s32[2,2,2]\n  [0,0] 0 2\n  [0,1] 4 6\n  [1,0] 8 10\n  [1,1] 12 14\n");
  // Several arguments; what a kernel does not write keeps its content.
  CHECK(place.run(s32, "1", {"print:fill:s32:3:7", "print:iota:s32:3:5"}).out ==
        "y: s32[3]\n  10 7 7\nx: s32[3]\n  5 6 7\n");

  result = place.run(f32, "1", {"print:f32:1", "fill:f32:1:inf"}, {"--json"});
  const json outputs = json::parse(result.out).at("outputs");
  CHECK(outputs == json::parse(R"([{"argument":1,"name":"y","type":"f32","shape":[1],
                                    "rows":[{"row":0,"head":["inf"],"tail":[]}]}])"));
}

TEST_CASE("random inputs depend on the seed and the argument, and on nothing else") {
  const RunPlace place;
  const std::string f32 = place.with("f32.ptx", doubling("f32", "4"));
  const auto shown = [&](const std::string& spec) {
    const auto result = place.run(f32, "1", {"print:random:f32:6:1", spec});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out.substr(result.out.find("x: "));
  };
  const std::string by_place = shown("print:random:f32:6");
  CHECK(by_place == shown("print:random:f32:6:2"));
  CHECK(by_place != shown("print:random:f32:6:3"));
  CHECK(by_place == shown("print:random:f32:6"));
  const auto values = [&](const std::string& type) {
    return json::parse(place
                           .run(f32, "1", {"print:fill:f32:1:0", "print:random:" + type + ":12"},
                                {"--json"})
                           .out)
        .at("outputs")[1]
        .at("rows")[0]
        .at("head");
  };
  for (const std::string type : {"f16", "bf16", "f32", "f64"}) {
    for (const json& value : values(type)) {
      CHECK(value.get<double>() >= -1);
      CHECK(value.get<double>() <= 1);
    }
  }
  bool negative = false;
  for (const json& value : values("s8")) negative = negative || value.get<int>() < 0;
  CHECK(negative);
}

TEST_CASE("inputs are read-only unless they are printed or written") {
  const RunPlace place;
  const std::string f32 = place.with("f32.ptx", doubling("f32", "4"));
  for (const std::string spec : {"fill:f32:4:0", "iota:f32:4", "random:f32:4"}) {
    const auto result = place.run(f32, "1", {spec, "fill:f32:4:1"});
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, "[write-to-readonly]"));
    CHECK(place.run(f32, "1", {"print:" + spec, "fill:f32:4:1"}).exit_code == 0);
  }
}

TEST_CASE("NumPy files are read and written") {
  const RunPlace place;
  const std::string f32 = place.with("f32.ptx", doubling("f32", "4"));
  const std::string data = bytes_of<float>({1, 2, 3, 4, 5, 6});
  const std::string x = place.with(
      "x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", data));
  const std::string y = place.file("y.npy");
  auto result = place.run(f32, "6", {"npy:f32:2x3:" + y, "print:npy:" + x});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out == "x: f32[2,3]\n  [0] 1 2 3\n  [1] 4 5 6\n");
  // As NumPy 1.24 writes numpy.arange(2, 13, 2, dtype="float32").reshape(2, 3).
  const std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const std::string expected = std::string("\x93NUMPY\x01\0\x76\0", 10) + head +
                               std::string(117 - head.size(), ' ') + "\n" +
                               bytes_of<float>({2, 4, 6, 8, 10, 12});
  CHECK(read_file(y) == expected);
  // What was written can be read; version 2 too; in and out by one argument keeps shape and type.
  const std::string again = place.file("again.npy");
  result = place.run(f32, "3",
                     {"npy:" + y + ":" + again,
                      "npy:" + place.with("v2.npy", npy("{'descr': '<f4', 'fortran_order': False, "
                                                        "'shape': (3,), }\n",
                                                        bytes_of<float>({1, 1, 1}), 2))});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(read_file(again) == expected.substr(0, 128) + bytes_of<float>({2, 2, 2, 8, 10, 12}));
}

TEST_CASE("NumPy files that are not understood are refused with the reason") {
  const RunPlace place;
  const std::string f32 = place.with("f32.ptx", doubling("f32", "4"));
  const auto refused = [&](const std::string& content, std::string_view message) {
    const std::string file = place.with("bad.npy", content);
    const auto result = place.run(f32, "1", {"print:f32:1", "npy:" + file});
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, file + ": error: cannot use the .npy file: "));
    CHECK(contains(result.err, message));
  };
  const std::string four(4, '\0');
  const auto header = [](const std::string& type, const std::string& order,
                         const std::string& shape) {
    return "{'descr': " + type + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  };
  refused("1 2 3 and more", "does not begin with NumPy's magic bytes; write it by numpy.save");
  refused(npy(header("'<f4'", "False", "(1,)"), four, 9), "format version is 9; 1, 2 and 3 are");
  refused(npy(header("'>f4'", "False", "(1,)"), four), "'>f4', big endian; save a.astype(");
  refused(npy(header("'<f4'", "True", "(1, 1)"), four), "Fortran order; save numpy.ascontig");
  refused(npy(header("'<c8'", "False", "(1,)"), four), "'<c8', no integers or floats of 8 to 64");
  refused(npy(header("'|O'", "False", "(1,)"), four), "'|O', which is no type");
  refused(npy(header("[('a', '<f4')]", "False", "(1,)"), four), "its elements are records");
  refused(npy(header("'<f4'", "False", "(2,)"), four),
          "its shape needs 8 bytes of elements, it holds 4");
  refused(npy(header("'<f4'", "False", "(99999999999, 99999999999)"), four), "shape is too large");
  refused(npy("{'descr': '<f4'}", four), "lacks one of 'descr', 'fortran_order' and 'shape'");
  refused(npy("{'descr': <f4}", four), "its header is malformed");
  refused(npy(header("'<f4'", "False", "(1,)"), "").substr(0, 20), "it ends within its header");
}

TEST_CASE("specs of typed buffers that are wrong say what to write") {
  const RunPlace place;
  const std::string f32 = place.with("f32.ptx", doubling("f32", "4"));
  const auto refused = [&](const std::string& spec, std::string_view message) {
    const auto result = place.run(f32, "1", {"print:f32:1", spec});
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, message));
  };
  refused("random:f33:4", "'f33' is not a TYPE, which is u8, u16");
  refused("random:f32", "the SHAPE is missing; write random:TYPE:SHAPE[:SEED]");
  refused("random:f32:4x", "'4x' is not a SHAPE, which is N, NxM, ... with numbers of at least 1");
  refused("random:f32:0", "'0' is not a SHAPE");
  refused("random:f32:4:1:2", "nothing follows the SEED");
  refused("random:f32:4:-1", "a .u64 value is between 0 and");
  refused("fill:f32:4", "the VALUE is missing; write fill:TYPE:SHAPE:VALUE");
  refused("fill:u8:4:256", "a .u8 value is between 0 and 255");
  refused("iota:f32:4:1:2:3", "nothing follows the STEP");
  refused("npy:", "the FILE is missing; write npy:FILE, npy:FILE:FILE2 or npy:TYPE:SHAPE:FILE");
  refused("npy:bf16:4:y.npy", "NumPy has no bf16; use u16 for its bits");
  refused("print:in:x.bin", "'in' is not a TYPE");
  refused("fill:f64:99999999999:0", "has 799999999992 bytes, the GPU has");
}

TEST_CASE("output paths are checked before the run") {
  const RunPlace place;
  // Would run for long.
  const std::string f32 = place.with("f32.ptx", doubling("f32", "4"));
  const auto refused = [&](const std::vector<std::string>& arguments, std::string_view message,
                           const std::vector<std::string>& more = {}) {
    const auto result = place.run(f32, "1", arguments, more);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, message));
    CHECK_FALSE(contains(result.err, "warp instructions"));
  };
  const std::string absent = place.file("none/y.bin");
  refused({"out:4:" + absent, "fill:f32:1:0"}, "ptxgen: --arg out:4:" + absent + ": '" + absent +
                                                   "' cannot be written: there is no folder '" +
                                                   place.file("none") + "'");
  refused({"out:4:" + place.folder.path(), "fill:f32:1:0"}, "is a folder; name a file in it");
  refused({"print:f32:1", "fill:f32:1:0"}, "ptxgen: -o: '" + absent + "' cannot be written",
          {"-o", absent});
  const std::string twice = place.file("y.bin");
  refused({"out:4:" + twice, "zero:4:" + twice}, "is written twice; name another file");
  CHECK_FALSE(std::filesystem::exists(twice));
}

TEST_CASE("option --entry takes C++ names and pieces of names") {
  const RunPlace place;
  std::string text = doubling("f32", "4", "_Z5scalePfS_");
  const auto add = [&text](const std::string& entry) {
    const std::string more = doubling("f32", "4", entry);
    text += more.substr(more.find(".visible"));
  };
  add("_ZN4math5scaleEPfS0_");
  add("_Z6offsetIfEvPT_S1_");
  add("plain");
  const std::string ptx = place.with("several.ptx", text);
  const auto run = [&](const std::string& entry) {
    return place.run(ptx, "1", {"print:f32:1", "fill:f32:1:1"}, {"--entry", entry});
  };
  CHECK(run("plain").err.starts_with("plain: ok"));
  CHECK(run("_Z5scalePfS_").err.starts_with("scale(float*, float*): ok"));
  CHECK(run("scale(float*, float*)").err.starts_with("scale(float*, float*): ok"));
  CHECK(run("scale").err.starts_with("scale(float*, float*): ok"));
  CHECK(run("math::scale").err.starts_with("math::scale(float*, float*): ok"));
  CHECK(run("offset").err.starts_with("void offset<float>(float*, float*): ok"));
  CHECK(run("offset<float>").err.starts_with("void offset<float>(float*, float*): ok"));
  CHECK(run("offs").err.starts_with("void offset<float>(float*, float*): ok"));
  auto result = run("cal");
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err,
                 "has several such entries, write more of the name: scale(float*, float*) "
                 "(_Z5scalePfS_), math::scale(float*, float*) (_ZN4math5scaleEPfS0_)"));
  result = run("ofset");
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "has no such entry; did you mean 'offset'?; it has: scale("));
  result = place.run(ptx, "1", {"print:f32:1", "fill:f32:1:1"});
  CHECK(contains(result.err, "several.ptx has several entries, name one with --entry: scale("));
}

TEST_CASE("misspelt commands, options, files and names are answered by the nearest") {
  const RunPlace place;
  const auto answer = [](const std::vector<std::string>& call) {
    const auto result = ptxgen_program(call);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(answer({"chekc", "k.ptx"})
            .starts_with("ptxgen: there is no command 'chekc'; did you mean 'check'?; there are: "
                         "list, dump, "));
  CHECK(answer({"xyzzy"}).starts_with("ptxgen: there is no command 'xyzzy'; there are: list"));
  CHECK(answer({"run", "k.ptx", "--gird", "4"})
            .starts_with("ptxgen run: there is no option '--gird'; did you mean '--grid'?\n"));
  CHECK(answer({"check", "k.ptx", "--jsno"})
            .starts_with("ptxgen check: there is no option '--jsno'; did you mean '--json'?\n"));
  CHECK(answer({"--verison"})
            .starts_with("ptxgen: there is no option '--verison'; did you mean '--version'?\n"));
  CHECK(contains(answer({"dump", "gemv_coalesed"}), "did you mean 'gemv_coalesced'?"));
  CHECK(contains(answer({"dump", "gemv", "-p", "layuot=R"}), "did you mean 'layout'?"));
  CHECK(contains(answer({"explain", "gemv", "--gpu", "h20"}), "did you mean 'h200'?"));
  place.with("vadd.ptx", "");
  place.with("notes.txt", "");
  CHECK(contains(answer({"check", place.file("vad.ptx")}),
                 "cannot read the file: No such file or directory; did you mean '" +
                     place.file("vadd.ptx") + "'?"));
  CHECK(contains(answer({"run", place.folder.path(), "--grid", "1", "--block", "1"}),
                 "cannot read the file: Is a directory; it holds vadd.ptx"));
  CHECK(contains(answer({"run", "fma_rpt", "--grid", "1", "--block", "1"}),
                 "fma_rpt is a kernel of the library: ptxgen dump fma_rpt prints its PTX"));
}

TEST_CASE("explain --block gives the block of a PTX file that does not say it") {
  const RunPlace place;
  const std::string ptx = place.with("f32.ptx", doubling("f32", "4"));
  CHECK(contains(ptxgen_program({"explain", ptx}).out, "occupancy: not known"));
  const auto result = ptxgen_program({"explain", ptx, "--block", "128,2", "--json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json kernel = json::parse(result.out).at("kernels")[0];
  CHECK(kernel.at("occupancy").at("threads") == 256);
  CHECK(kernel.at("memory").at("block") == json({128, 2, 1}));
  CHECK(kernel.at("memory").at("block_assumed") == false);
  CHECK(contains(ptxgen_program({"explain", ptx, "--block", "2048"}).err,
                 "--block 2048: has 2048 threads; a block has at most 1024"));
  std::string required = doubling("f32", "4");
  required.insert(required.find("\n{\n"), "\n.reqntid 64");
  const std::string file = place.with("required.ptx", required);
  CHECK(contains(ptxgen_program({"explain", file, "--block", "32"}).err,
                 "--block 32,1,1: the kernel's .reqntid is 64,1,1; leave --block out"));
  CHECK(contains(ptxgen_program({"explain", "vadd", "--block", "32"}).err,
                 "--block is for PTX files"));
}

TEST_CASE("a .cu file is compiled and run, by NVRTC or by nvcc") {
  const RunPlace place;
  const std::string kernel =
      "__global__ void twice(float* y, const float* x, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) y[i] = 2 * x[i];\n}\n";
  const std::string file = place.with("twice.cu", kernel);
  const auto run = [&](const std::string& path, const std::string& n) {
    return place.run(path, "32", {"print:f32:4", "iota:f32:8", "s32:" + n}, {"--entry", "twice"});
  };
  const auto result = run(file, "4");
  if (contains(result.err, "[no-compiler]")) {
    WARN("skipped: neither NVRTC nor nvcc is here");
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "CUDA C++ needs the NVRTC library or nvcc, and neither was found"));
    return;
  }
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out == "param_0: f32[4]\n  0 2 4 6\n");
  CHECK(contains(result.err, "twice.cu: compiled by "));
  CHECK(contains(result.err, " for sm_90"));
  CHECK(contains(result.err, "twice(float*, float const*, int): ok; "));
  CHECK(contains(result.err, "emulating h200"));
  // A finding names the line of the source.
  const auto bad = run(file, "5");
  CHECK(bad.exit_code == 1);
  CHECK(contains(bad.err, "[out-of-bounds]"));
  CHECK(contains(bad.err, "twice.cu:3"));
  // A mistake in the source is one of the compiler's.
  const auto wrong =
      run(place.with("wrong.cu", "__global__ void twice(float* y) { y = z; }\n"), "1");
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "identifier \"z\" is undefined"));
}
