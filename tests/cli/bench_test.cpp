// tests/cli/bench_test.cpp - ptxgen bench: what it writes, refuses and leaves behind
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A folder of its own, in which the program runs.
class Folder {
 public:
  SubprocessResult bench(const std::vector<std::string>& arguments) const {
    std::string line = "cd '" + folder_.path() + "' && exec '" PTXGEN_PROGRAM "' bench";
    for (const std::string& argument : arguments) line += " '" + argument + "'";
    return run_program({"/bin/sh", "-c", line});
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }

 private:
  TemporaryDirectory folder_;
};

// A reader of the first day: it knows columns by name and takes no notice of others.
std::vector<std::map<std::string, std::string>> rows_of(const std::string& file) {
  std::istringstream lines(read_file(file));
  std::string line;
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::size_t at = 0;
    for (std::size_t comma = line.find(','); comma != std::string::npos;
         comma = line.find(',', at)) {
      fields.push_back(line.substr(at, comma - at));
      at = comma + 1;
    }
    fields.push_back(line.substr(at));
    if (names.empty()) {
      names = fields;
      continue;
    }
    REQUIRE(fields.size() == names.size());
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = fields[i];
  }
  return rows;
}

void check_usage_error(const Folder& folder, const std::vector<std::string>& arguments,
                       const std::string& message) {
  const SubprocessResult result = folder.bench(arguments);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  INFO(result.err);
  CHECK(contains(result.err, "ptxgen: " + message));
  CHECK(folder.files().empty());
}

}  // namespace

TEST_CASE("each benchmark runs with defaults and leaves one CSV file with a name of its own") {
  const Folder folder;
  for (const std::string op : {"vadd", "copy", "fma_rpt"}) {
    INFO(op);
    const SubprocessResult first =
        folder.bench({"--op", op, "--n", "4099", "--device", "emulator"});
    const SubprocessResult second =
        folder.bench({"--op", op, "--n", "4099", "--device", "emulator"});
    CHECK(first.exit_code == 0);
    CHECK(second.exit_code == 0);
    CHECK(contains(first.err, "they say nothing about a GPU"));
    // In a pipe: the file's name and nothing else.
    CHECK(first.out.substr(0, 6 + op.size()) == "bench-" + op);
    CHECK(first.out != second.out);
    const std::string name = first.out.substr(0, first.out.find('\n'));
    CHECK(name.size() + 1 == first.out.size());
    const auto rows = rows_of(folder.path(name));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].at("validated") == "true");
    CHECK(rows[0].at("timing_source") == "host");
    CHECK(rows[0].at("n") == "4099");
    CHECK(rows[0].at("fma_k") == (op == "fma_rpt" ? "128" : ""));
    CHECK(rows[0].at("fma_a").empty() == (op != "fma_rpt"));
  }
  CHECK(folder.files().size() == 6);
}

TEST_CASE("rates follow from the other columns") {
  const Folder folder;
  REQUIRE(folder
              .bench({"--op", "fma_rpt", "--sweep", "2^8..2^12", "--fma-k", "1..16", "--iters", "4",
                      "--csv", "out.csv", "--device", "emulator"})
              .exit_code == 0);
  const auto rows = rows_of(folder.path("out.csv"));
  REQUIRE(rows.size() == 25);
  for (const auto& row : rows) {
    const double seconds = std::stod(row.at("time_ms_total")) / 1000;
    const double iters = std::stod(row.at("iters"));
    const double n = std::stod(row.at("n"));
    const double k = std::stod(row.at("fma_k"));
    CHECK(std::stod(row.at("bytes_model")) == 8 * n);
    CHECK(std::stod(row.at("flops_model")) == 2 * k * n);
    CHECK(std::stod(row.at("achieved_gbs")) == Approx(8 * n * iters / seconds / 1e9));
    CHECK(std::stod(row.at("achieved_gflops")) == Approx(2 * k * n * iters / seconds / 1e9));
  }
}

TEST_CASE("JSON has the rows of the file, and says that they are the emulator's") {
  const Folder folder;
  const SubprocessResult result = folder.bench({"--dtype", "bf16", "--n", "1000", "--json", "--csv",
                                                "a.csv", "--validate-all", "--device", "emulator"});
  REQUIRE(result.exit_code == 0);
  const json document = json::parse(result.out);
  CHECK(document.at("emulated") == true);
  CHECK(document.at("csv") == "a.csv");
  CHECK(document.at("note") ==
        "these rates are the emulator's on this host; they say nothing about a GPU");
  const json& row = document.at("rows").at(0);
  CHECK(row.at("compared") == 1000);
  CHECK(row.at("validated") == true);
  CHECK(row.at("bytes_model") == 6000);
  CHECK(row.at("fma_k").is_null());
}

TEST_CASE("wrong calls are refused, with nothing left behind") {
  const Folder folder;
  check_usage_error(folder, {"--op", "gemm"},
                    "--op gemm: there is no such benchmark; there are: vadd, copy, fma_rpt");
  check_usage_error(folder, {"--n", "0"}, "--n 0: expects a whole number in 1..2147483647, or 2^E");
  check_usage_error(folder, {"--iters", "0"},
                    "--iters 0: expects a whole number in 1..1000000000, or 2^E");
  check_usage_error(folder, {"--op", "fma_rpt", "--fma-k", "-1"},
                    "--fma-k -1: expects a whole number in 0..2147483647, or 2^E");
  check_usage_error(folder, {"--block", "100"},
                    "--block 100: expects a multiple of 32 (a warp) in 32..1024");
  check_usage_error(folder, {"--block", "2048"},
                    "--block 2048: expects a multiple of 32 (a warp) in 32..1024");
  for (const std::string op : {"copy", "fma_rpt"}) {
    for (const std::string dtype : {"fp16", "bf16"}) {
      check_usage_error(
          folder, {"--op", op, "--dtype", dtype},
          "--dtype " + dtype + ": " + op + " is measured in fp32 only; fp16 and bf16 are for vadd");
    }
  }
  check_usage_error(folder, {"--dtype", "fp64"}, "--dtype fp64: expects fp32, fp16 or bf16");
  check_usage_error(folder, {"--n", "5", "--sweep", "1..2"}, "--n and --sweep: give one of them");
  check_usage_error(folder, {"--sweep", "8..4"},
                    "--sweep 8..4: a range X..Y runs from X over 2 X, 4 X, ... to Y, with 1 <= X "
                    "<= Y");
  check_usage_error(folder, {"--fma-k", "5"},
                    "--fma-k, --fma-a and --fma-b are for --op fma_rpt, not vadd");
  check_usage_error(folder, {"--op", "fma_rpt", "--fma-a", "x"},
                    "--fma-a x: expects a number, as 0.5 or 1e-3");
  check_usage_error(folder, {"--csv", "no/such/folder.csv"},
                    "--csv no/such/folder.csv: cannot be written: No such file or directory");
}

TEST_CASE("more elements than the GPU has memory for are refused with the largest n") {
  const Folder folder;
  check_usage_error(folder, {"--n", "2147483647", "--gpu", "t4", "--device", "emulator"},
                    "n = 2147483647: the buffers take 25769803764 bytes, and ");
}

TEST_CASE("an existing file is left alone unless it may be replaced") {
  const Folder folder;
  const std::vector<std::string> call = {"--n", "64", "--csv", "a.csv", "--device", "emulator"};
  REQUIRE(folder.bench(call).exit_code == 0);
  const std::string before = read_file(folder.path("a.csv"));
  const SubprocessResult refused = folder.bench(call);
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err,
                 "ptxgen: --csv a.csv: the file exists; choose another name, or replace it with "
                 "--overwrite"));
  CHECK(read_file(folder.path("a.csv")) == before);
  std::vector<std::string> replacing = call;
  replacing.push_back("--overwrite");
  replacing.push_back("--op");
  replacing.push_back("copy");
  CHECK(folder.bench(replacing).exit_code == 0);
  CHECK(rows_of(folder.path("a.csv"))[0].at("op") == "copy");
  CHECK(folder.files() == std::vector<std::string>{"a.csv"});
}

TEST_CASE("bench NAME times any kernel of the library, and writes no file") {
  const Folder folder;
  for (const std::string kernel : {"rmsnorm", "gemv", "vadd"}) {
    const auto result = folder.bench({kernel, "--iters", "2", "--rounds", "3", "--json"});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    const json shown = json::parse(result.out);
    CHECK(shown.at("kernel") == kernel);
    CHECK(shown.at("ok") == true);
    CHECK(shown.at("us").size() == 3);
    const double us = shown.at("us_median");
    CHECK(shown.at("achieved_gbs") == Approx(shown.at("bytes").get<double>() / us * 1e-3));
    CHECK(shown.at("emulated") == true);
    CHECK(contains(shown.at("note").get<std::string>(), "say nothing about a GPU"));
  }
  const auto text = folder.bench({"silu", "-p", "n=1000", "-p", "type=f16", "--rounds", "2"});
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "silu n = 1000, type = f16 on "));
  CHECK(contains(text.out, " us per launch, the median of 2 rounds of 3 ("));
  CHECK(contains(text.out, "right: 3000 elements compared"));
  CHECK(folder.files().empty());
}

TEST_CASE("bench NAME --cold times single launches beside copies") {
  const Folder folder;
  const auto result = folder.bench({"rmsnorm", "-p", "columns=256", "--cold", "--json"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  const json shown = json::parse(result.out);
  CHECK(shown.at("cold") == true);
  CHECK(shown.at("iters") == 1);
  CHECK(shown.at("us").size() == 3);
  CHECK(shown.at("copy_us").size() == 3);
  CHECK(shown.at("compared") == 4 * 256);
  const double share = shown.at("copy_share");
  CHECK(share ==
        Approx(shown.at("achieved_gbs").get<double>() / shown.at("copy_gbs").get<double>()));
  const auto text = folder.bench({"rmsnorm", "-p", "columns=256", "--cold", "--rounds", "2"});
  CHECK(contains(text.out, "the median of 2 rounds of 1 ("));
  CHECK(contains(text.out,
                 "cold: 4096 bytes read before each launch; a copy of as many bytes "
                 "beside each: "));
  check_usage_error(folder, {"rmsnorm", "--cold", "--iters", "5"},
                    "--iters 5 with --cold: a cold round is one launch; ask for more --rounds");
  const auto beside =
      folder.bench({"gemm_naive", "-p", "m=8", "-p", "n=8", "-p", "k=8", "--cublas"});
  CHECK(beside.exit_code == 0);
  CHECK(contains(beside.out, "cuBLAS is not measured: "));
  CHECK(contains(beside.out, "cuBLAS needs a GPU, and this device is emulated"));
  const auto document =
      folder.bench({"gemm_naive", "-p", "m=8", "-p", "n=8", "-p", "k=8", "--cublas", "--json"});
  CHECK(contains(document.out, "\"cublas_missing\": \"error: cuBLAS needs a GPU"));
  check_usage_error(folder, {"--cublas"},
                    "--cublas is for a kernel by name, as in: ptxgen bench gemm --cublas");
  check_usage_error(folder, {"--cold"},
                    "--cold is for a kernel by name, as in: ptxgen bench rmsnorm --cold");
}

TEST_CASE("options of one kind of benchmark are refused for the other") {
  const Folder folder;
  check_usage_error(
      folder, {"rmsnorm", "--n", "5"},
      "--n is for bench --op; a kernel's parameters are set with -p, see ptxgen list");
  check_usage_error(folder, {"rmsnorm", "--overwrite"}, "--overwrite is for bench --op");
  check_usage_error(folder, {"-p", "n=3"},
                    "-p is for a kernel by name, as in: ptxgen bench rmsnorm -p rows=64");
  check_usage_error(folder, {"--rounds", "3"},
                    "--rounds is for a kernel by name, as in: ptxgen bench rmsnorm --rounds 9");
  check_usage_error(folder, {"nothing"}, "there is no kernel 'nothing'");
}
