// src/cli/commands/bench.cpp - ptxgen bench: kernels against the clock
#include <algorithm>
#include <ctime>
#include <iostream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "cli/commands/bench_job.hpp"
#include "cli/commands/bench_kernel.hpp"
#include "cli/output/run_report.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/new_file.hpp"
#include "cli_common/numbers.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/support/trace.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxElements = (std::uint64_t{1} << 31) - 1;  // the s32 n of fma_rpt

struct BenchArguments {
  std::string kernel;  // of the library; empty: the benchmark `op`
  std::vector<std::string> settings;
  std::uint64_t rounds = 0;  // 0: not given
  bool cold = false;
  bool cublas = false;
  std::string op;
  std::string n;
  std::string sweep;
  std::string iters;
  std::string warmup;
  std::string block;
  std::string grid;
  std::string dtype;
  std::string fma_k;
  std::string fma_a;
  std::string fma_b;
  std::uint64_t seed = 0;
  DeviceOptions device;
  ProfileOptions profile;
  std::string csv;
  bool overwrite = false;
  bool validate_all = false;
  bool json = false;
};

// "X" one value, "X..Y" X, 2 X, 4 X, ... up to Y.
std::vector<std::uint64_t> range(const std::string& option, const std::string& text,
                                 std::uint64_t min) {
  const auto dots = text.find("..");
  const std::uint64_t first =
      whole_number(option, std::string_view(text).substr(0, dots), min, kMaxElements);
  if (dots == std::string::npos) return {first};
  const std::uint64_t last =
      whole_number(option, std::string_view(text).substr(dots + 2), min, kMaxElements);
  if (first == 0 || last < first) {
    throw UsageError(format_text(
        "{} {}: a range X..Y runs from X over 2 X, 4 X, ... to Y, with 1 <= X <= Y", option, text));
  }
  std::vector<std::uint64_t> values;
  for (std::uint64_t value = first; value <= last; value *= 2) values.push_back(value);
  return values;
}

// Validated sizes and repetitions of the measurement.
struct Plan {
  BenchJob job;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> repetitions;  // one 0 for other ops than fma_rpt
};

// What the options are that were not used.
BenchArguments with_defaults(BenchArguments options) {
  if (options.op.empty()) options.op = "vadd";
  if (options.dtype.empty()) options.dtype = "fp32";
  if (options.block.empty()) options.block = "256";
  if (options.grid.empty()) options.grid = "0";
  return options;
}

BenchOp op_of(const BenchArguments& options) {
  if (const auto op = bench_op(options.op)) return *op;
  throw UsageError(format_text(
      "--op {}: there is no such benchmark; there are: vadd, copy, fma_rpt", options.op));
}

BenchType type_of(const BenchArguments& options, BenchOp op) {
  const auto type = bench_type(options.dtype);
  if (!type) {
    throw UsageError(format_text("--dtype {}: expects fp32, fp16 or bf16", options.dtype));
  }
  if (*type != BenchType::F32 && op != BenchOp::Vadd) {
    throw UsageError(
        format_text("--dtype {}: {} is measured in fp32 only; fp16 and bf16 are for vadd",
                    options.dtype, options.op));
  }
  return *type;
}

Plan plan_of(const BenchArguments& options, bool emulated) {
  Plan plan;
  BenchJob& job = plan.job;
  job.op = op_of(options);
  job.type = type_of(options, job.op);
  if (!options.n.empty() && !options.sweep.empty()) {
    throw UsageError("--n and --sweep: give one of them");
  }
  const std::string n = options.n.empty() ? (emulated ? "2^20" : "2^26") : options.n;
  plan.sizes = options.sweep.empty() ? std::vector{whole_number("--n", n, 1, kMaxElements)}
                                     : range("--sweep", options.sweep, 1);
  // On the emulator later launches are not faster than the first.
  job.iters =
      whole_number("--iters", options.iters.empty() ? (emulated ? "3" : "100") : options.iters, 1,
                   1'000'000'000);
  job.warmup =
      whole_number("--warmup", options.warmup.empty() ? (emulated ? "1" : "10") : options.warmup, 0,
                   1'000'000'000);
  const std::uint64_t block = whole_number("--block", options.block, 0, ~std::uint64_t{0});
  if (block < 32 || block > 1024 || block % 32 != 0) {
    throw UsageError(
        format_text("--block {}: expects a multiple of 32 (a warp) in 32..1024", block));
  }
  job.block = static_cast<std::uint32_t>(block);
  job.grid = static_cast<std::uint32_t>(whole_number("--grid", options.grid, 0, 0x7fffffff));
  const bool fma = job.op == BenchOp::FmaRpt;
  if (!fma && !(options.fma_k.empty() && options.fma_a.empty() && options.fma_b.empty())) {
    throw UsageError("--fma-k, --fma-a and --fma-b are for --op fma_rpt, not " + options.op);
  }
  plan.repetitions =
      fma ? range("--fma-k", options.fma_k.empty() ? (emulated ? "128" : "1024") : options.fma_k, 0)
          : std::vector<std::uint64_t>{0};
  job.a = real_number("--fma-a", options.fma_a.empty() ? "0.999" : options.fma_a);
  job.b = real_number("--fma-b", options.fma_b.empty() ? "0.001" : options.fma_b);
  job.seed = options.seed;
  job.validate_all = options.validate_all;
  return plan;
}

void check_memory(const Plan& plan, const Context& context, const std::string& device) {
  const std::uint64_t max_n = *std::max_element(plan.sizes.begin(), plan.sizes.end());
  const std::uint64_t needed = buffer_bytes(plan.job, max_n);
  const std::uint64_t free = context.memory().free;
  if (needed <= free) return;
  throw UsageError(
      format_text("n = {}: the buffers take {}, and {} has {} free; the largest n is {}", max_n,
                  count_text(needed, "byte"), device, count_text(free, "byte"),
                  free / buffer_bytes(plan.job, 1)));
}

std::string default_csv(const BenchArguments& options) {
  const std::time_t now = std::time(nullptr);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", std::gmtime(&now));
  return "bench-" + options.op + "-" + stamp + ".csv";
}

// Device and driver as the reports name them.
struct Place {
  std::string device;
  std::string gpu;
  std::string driver;
  std::string timing;
  bool emulated = true;
};

Place place_of(const Device& device, const DeviceChoice& choice) {
  const DeviceInfo& info = device.info();
  const std::string version =
      format_text("{}.{}", info.driver_version / 1000, info.driver_version % 1000 / 10);
  return {choice.name, info.name, (choice.emulator || choice.host ? "emulated " : "") + version,
          choice.emulator || choice.host ? "host" : "cuda_events", choice.emulator};
}

json row_json(const BenchRow& row) {
  const std::uint64_t bytes = bytes_model(row.work);
  const std::uint64_t flops = flops_model(row.work);
  json result = {{"op", to_string(row.work.op)},
                 {"dtype", to_string(row.work.type)},
                 {"n", row.work.n},
                 {"block", row.block},
                 {"grid", row.grid},
                 {"iters", row.iters},
                 {"warmup", row.warmup},
                 {"time_ms_total", row.time_ms_total},
                 {"bytes_model", bytes},
                 {"flops_model", flops},
                 {"achieved_gbs", achieved(bytes, row.iters, row.time_ms_total)},
                 {"achieved_gflops", achieved(flops, row.iters, row.time_ms_total)},
                 {"validated", row.validation.ok()},
                 {"compared", row.validation.compared},
                 {"wrong", row.validation.wrong},
                 {"max_error", row.validation.max_error},
                 {"ptx_hash", row.ptx_hash},
                 {"timing_source", row.timing_source},
                 {"fma_k", nullptr},
                 {"fma_a", nullptr},
                 {"fma_b", nullptr}};
  if (row.work.op == BenchOp::FmaRpt) {
    result["fma_k"] = row.work.k;
    result["fma_a"] = row.fma_a;
    result["fma_b"] = row.fma_b;
  }
  return result;
}

std::string table_line(const BenchRow& row) {
  const double each = row.time_ms_total / static_cast<double>(row.iters) * 1e3;
  return format_text("{:<8} {:<5} {:>11} {:>7} {:>12.2f} {:>10.2f} {:>11.2f}  {}\n",
                     to_string(row.work.op), to_string(row.work.type), row.work.n, row.work.k, each,
                     achieved(bytes_model(row.work), row.iters, row.time_ms_total),
                     achieved(flops_model(row.work), row.iters, row.time_ms_total),
                     row.validation.ok() ? "right" : "WRONG");
}
constexpr std::string_view kTableHead =
    "op       dtype           n       k    us/launch       GB/s     GFLOP/s  result\n";

// Wrong results, one line for each row, on standard error.
void complain(const BenchRow& row) {
  if (row.validation.ok()) return;
  const Validation& found = row.validation;
  std::cerr << format_text(
      "ptxgen: {} with n = {}: {} of {} checked elements are wrong, the first is {}, the largest "
      "error {:g}\n",
      to_string(row.work.op), row.work.n, found.wrong, found.compared, found.first_wrong,
      found.max_error);
}

std::vector<BenchRow> measure_all(const Plan& plan, const Context& context, const Place& place) {
  const Launcher launcher(context);
  std::vector<BenchRow> rows;
  const bool chatty = is_terminal(Stream::Err);
  const std::size_t total = plan.sizes.size() * plan.repetitions.size();
  for (const std::uint64_t n : plan.sizes) {
    for (const std::uint64_t k : plan.repetitions) {
      if (chatty) {
        std::cerr << "\r[" << rows.size() + 1 << '/' << total << "] n = " << n << "\x1b[K"
                  << std::flush;
      }
      BenchRow& row = rows.emplace_back(measure(launcher, context, plan.job, n, k));
      row.device = place.gpu;
      row.driver = place.driver;
      row.timing_source = place.timing;
    }
  }
  if (chatty) std::cerr << "\r\x1b[K" << std::flush;
  return rows;
}

void report(const BenchArguments& options, const Place& place, const std::vector<BenchRow>& rows,
            const std::string& csv) {
  if (options.json) {
    json list = json::array();
    for (const BenchRow& row : rows) list.push_back(row_json(row));
    json document = {{"device", place.device},     {"gpu", place.gpu},
                     {"driver", place.driver},     {"csv", csv},
                     {"emulated", place.emulated}, {"rows", list}};
    if (place.emulated) document["note"] = kEmulatedNote;
    write_output({}, text_of(document));
    return;
  }
  std::string text;
  if (is_terminal(Stream::Out)) {
    text = place.gpu + ", driver " + place.driver + "\n" + std::string(kTableHead);
    for (const BenchRow& row : rows) text += table_line(row);
  }
  write_output({}, text + csv + "\n");
  if (place.emulated) std::cerr << "note: " << kEmulatedNote << '\n';
}

int measure_op(const BenchArguments& options) {
  Settings settings = Settings::from_environment();
  Profile profile(options.profile);
  profile.apply(settings);
  const DeviceChoice choice = options.device.choice(settings);
  const Plan plan = plan_of(options, choice.emulator);
  const ptx::Gpu gpu = chosen_gpu(options.device.gpu, choice, {});
  NewFile csv = options.csv.empty() ? NewFile::with_free_name(default_csv(options))
                                    : NewFile::named(options.csv, options.overwrite);
  const Device device = open_device(choice, gpu, settings);
  const Place place = place_of(device, choice);
  const Context context(device);
  check_memory(plan, context, place.gpu);

  std::vector<BenchRow> rows;
  Span span(device.trace(), "bench", "program");
  span.argument("op", options.op);
  try {
    rows = measure_all(plan, context, place);
  } catch (const std::bad_alloc&) {
    throw UsageError(
        format_text("the host has too little memory for the inputs of n = {}; choose a smaller n",
                    plan.sizes.back()));
  }
  span.end();
  std::string text(csv_header());
  for (const BenchRow& row : rows) text += csv_line(row);
  csv.publish(text);
  for (const BenchRow& row : rows) complain(row);
  report(options, place, rows, csv.path());
  profile.report(device.trace());
  const bool right = std::all_of(rows.begin(), rows.end(),
                                 [](const BenchRow& row) { return row.validation.ok(); });
  return right ? kDone : kFound;
}

// Options of the other kind of benchmark are refused, not ignored.
void check_options(const BenchArguments& options) {
  const bool named = !options.kernel.empty();
  const std::pair<const char*, bool> of_ops[] = {
      {"--op", !options.op.empty()},       {"--n", !options.n.empty()},
      {"--sweep", !options.sweep.empty()}, {"--block", !options.block.empty()},
      {"--grid", !options.grid.empty()},   {"--dtype", !options.dtype.empty()},
      {"--fma-k", !options.fma_k.empty()}, {"--fma-a", !options.fma_a.empty()},
      {"--fma-b", !options.fma_b.empty()}, {"--csv", !options.csv.empty()},
      {"--overwrite", options.overwrite},  {"--validate-all", options.validate_all}};
  for (const auto& [name, used] : of_ops) {
    if (!named || !used) continue;
    throw UsageError(format_text(
        "{} is for bench --op; a kernel's parameters are set with -p, see ptxgen list", name));
  }
  if (named) return;
  if (!options.settings.empty()) {
    throw UsageError("-p is for a kernel by name, as in: ptxgen bench rmsnorm -p rows=64");
  }
  if (options.rounds != 0) {
    throw UsageError("--rounds is for a kernel by name, as in: ptxgen bench rmsnorm --rounds 9");
  }
  if (options.cold) {
    throw UsageError("--cold is for a kernel by name, as in: ptxgen bench rmsnorm --cold");
  }
  if (options.cublas) {
    throw UsageError("--cublas is for a kernel by name, as in: ptxgen bench gemm --cublas");
  }
}

int bench(const BenchArguments& options) {
  check_options(options);
  if (!options.kernel.empty()) {
    return bench_kernel({options.kernel, options.settings, options.iters, options.warmup,
                         options.rounds, options.cold, options.cublas, options.seed, options.device,
                         options.profile, options.json});
  }
  return measure_op(with_defaults(options));
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchArguments>();
  Command command(app, "bench",
                  "Time a kernel of the library, or measure vadd, copy or fma_rpt into a CSV file");
  command.footer("Example: ptxgen bench --op copy --sweep 2^10..2^28 --csv copy.csv");
  command.add_option("kernel", options->kernel,
                     "a name that `ptxgen list` shows; without it the benchmark of --op");
  command.add_option("-p", options->settings, "NAME=VALUE of the kernel, repeatable")
      .one_value_each();
  command
      .add_option("--rounds", options->rounds,
                  "rounds of launches of the kernel (default 5; cold 20, emulator 3)")
      .range(1, 1'000'000);
  command.add_flag("--cold", options->cold,
                   "of the kernel: rounds of one launch after other memory was read, each beside "
                   "a copy of as many bytes");
  command.add_flag(
      "--cublas", options->cublas,
      "of a kernel of the family gemm: each round beside one of cuBLAS, compared, too");
  command.add_option("--op", options->op, "vadd (default), copy or fma_rpt");
  command.add_option("--n", options->n, "elements, also as 2^E (default 2^26; emulator 2^20)");
  command.add_option("--sweep", options->sweep, "X..Y instead of --n: X, 2 X, 4 X, ... up to Y");
  command.add_option("--iters", options->iters, "launches measured (default 100; emulator 3)");
  command.add_option("--warmup", options->warmup, "launches before (default 10; emulator 1)");
  command.add_option("--block", options->block,
                     "threads of a block, a multiple of 32 (default 256)");
  command.add_option("--grid", options->grid,
                     "blocks (default 0: as many as have 16 bytes for each thread)");
  command.add_option("--dtype", options->dtype, "fp32 (default); fp16 and bf16 for vadd");
  command.add_option("--fma-k", options->fma_k,
                     "repetitions of fma_rpt, or X..Y (default 1024; emulator 128)");
  command.add_option("--fma-a", options->fma_a, "factor of fma_rpt (default 0.999)");
  command.add_option("--fma-b", options->fma_b, "summand of fma_rpt (default 0.001)");
  command.add_option("--seed", options->seed, "of the random inputs").capture_default_str();
  options->device.add_to(command);
  options->profile.add_to(command);
  command.add_option("--csv", options->csv, "where to (default: a new name in this folder)");
  command.add_flag("--overwrite", options->overwrite, "replace the file of --csv");
  command.add_flag("--validate-all", options->validate_all,
                   "look at every element instead of 1024 and the last");
  command.add_flag("--json", options->json, "one JSON document instead of the table");
  command.callback([options, &exit_code] { exit_code = bench(*options); });
}

}  // namespace ptxgen::cli
