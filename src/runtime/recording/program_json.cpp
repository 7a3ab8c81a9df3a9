// src/runtime/recording/program_json.cpp - lines of a recording of a program
#include "runtime/recording/program_json.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/recording/outputs.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

using nlohmann::json;
using namespace driver;

constexpr const char* kMemoryNames[] = {"device", "managed", "pinned", "registered",
                                        "stream", "array",   "mapped", "graph"};
constexpr const char* kResourceNames[] = {"array", "linear", "pitched"};
constexpr const char* kVirtualNames[] = {"reserve", "unreserve", "create", "release",
                                         "map",     "unmap",     "access"};
constexpr const char* kObjectNames[] = {"texture", "surface"};
constexpr const char* kNoEnd = "the program ended without ending its recording";

std::string line_of(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// Rows of one size are three numbers less.
json rows_json(const StepRows& rows) {
  if (rows.height == 1 && rows.depth == 1) return {rows.address, rows.width};
  return {rows.address, rows.width, rows.height, rows.depth, rows.pitch, rows.slice_height};
}

StepRows rows_in(const json& value) {
  StepRows rows;
  rows.address = value.at(0).get<std::uint64_t>();
  rows.width = rows.pitch = value.at(1).get<std::uint64_t>();
  if (value.size() == 2) return rows;
  rows.height = value.at(2).get<std::uint64_t>();
  rows.depth = value.at(3).get<std::uint64_t>();
  rows.pitch = value.at(4).get<std::uint64_t>();
  rows.slice_height = value.at(5).get<std::uint64_t>();
  return rows;
}

[[noreturn]] void refuse_text(std::string_view text, std::string_view what) {
  throw Error(Stage::Io, "bad-recording", format_text("'{}' is no {}", text, what));
}

/// The place of a member's text among names.
template <std::size_t Count>
std::size_t name_in(const json& value, const char* member, const char* const (&names)[Count],
                    std::string_view what) {
  const auto text = value.at(member).get<std::string>();
  const auto* const name = std::ranges::find(names, text);
  if (name == std::end(names)) refuse_text(text, what);
  return static_cast<std::size_t>(name - std::begin(names));
}

template <class Number, std::size_t Count>
void numbers_in(const json& value, Number (&numbers)[Count]) {
  for (std::size_t i = 0; i < Count; ++i) numbers[i] = value.at(i).get<Number>();
}

json array_json(const StepArray& array) {
  return {{"width", array.width},   {"height", array.height},     {"depth", array.depth},
          {"format", array.format}, {"channels", array.channels}, {"flags", array.flags}};
}

json resource_json(const StepResource& resource) {
  json built = {{"kind", kResourceNames[static_cast<std::size_t>(resource.kind)]},
                {"address", resource.address}};
  if (resource.kind == StepResource::Kind::Array) return built;
  built.update(
      {{"format", resource.format}, {"channels", resource.channels}, {"width", resource.width}});
  if (resource.kind == StepResource::Kind::Linear) return built;
  built.update({{"height", resource.height}, {"pitch", resource.pitch}});
  return built;
}

json sampler_json(const StepSampler& sampler) {
  return {{"address_modes", sampler.address_modes},
          {"filter", sampler.filter},
          {"flags", sampler.flags},
          {"anisotropy", sampler.anisotropy},
          {"border", sampler.border},
          {"mipmap", sampler.mipmap}};
}

json outputs_json(const std::vector<StepOutput>& outputs) {
  json built = json::array();
  for (const StepOutput& one : outputs) built.push_back({one.address, one.bytes, one.hash});
  return built;
}

struct StepJson {
  json operator()(const LoadStep& step) const {
    json variables = json::array();
    for (const StepVariable& one : step.variables) {
      variables.push_back({{"name", one.name}, {"address", one.address}, {"bytes", one.bytes}});
    }
    return {{"step", "load"}, {"module", step.module}, {"ptx", step.ptx}, {"variables", variables}};
  }
  json operator()(const UnloadStep& step) const {
    return {{"step", "unload"}, {"module", step.module}};
  }
  json operator()(const AllocateStep& step) const {
    json built = {{"step", "allocate"},
                  {"address", step.address},
                  {"bytes", step.bytes},
                  {"memory", kMemoryNames[static_cast<std::size_t>(step.memory)]}};
    if (step.content.empty()) {
      built["fill"] = step.fill;
    } else {
      built["content"] = step.content;
    }
    if (step.memory == StepMemory::Array) built["array"] = array_json(step.array);
    return built;
  }
  json operator()(const FreeStep& step) const {
    return {{"step", "free"}, {"address", step.address}};
  }
  json operator()(const WriteStep& step) const {
    return {{"step", "write"},
            {"to", rows_json(step.to)},
            {"content", step.content},
            {"unseen", step.unseen}};
  }
  json operator()(const CopyStep& step) const {
    return {{"step", "memcpy"}, {"to", rows_json(step.to)}, {"from", rows_json(step.from)}};
  }
  json operator()(const FillStep& step) const {
    return {{"step", "memset"},
            {"to", rows_json(step.to)},
            {"value", step.value},
            {"element_bytes", step.element_bytes}};
  }
  json operator()(const ReadStep& step) const {
    return {{"step", "read"}, {"from", rows_json(step.from)}, {"hash", step.hash}};
  }
  json operator()(const LaunchStep& step) const {
    return {{"step", "launch"},
            {"module", step.module},
            {"kernel", step.kernel},
            {"grid", step.grid},
            {"block", step.block},
            {"cluster", step.cluster},
            {"shared", step.shared_bytes},
            {"cooperative", step.cooperative},
            {"arguments", hex_of(step.arguments)},
            {"outputs", outputs_json(step.outputs)},
            {"failure", step.failure}};
  }
  json operator()(const VirtualStep& step) const {
    return {{"step", kVirtualNames[static_cast<std::size_t>(step.kind)]},
            {"address", step.address},
            {"bytes", step.bytes},
            {"handle", step.handle},
            {"value", step.value}};
  }
  json operator()(const GraphMemoryStep& step) const {
    return {{"step", "graph_memory"}, {"address", step.address}, {"bytes", step.bytes}};
  }
  json operator()(const BeginGraphStep&) const { return {{"step", "begin_graph"}}; }
  json operator()(const EndGraphStep& step) const {
    return {
        {"step", "end_graph"}, {"outputs", outputs_json(step.outputs)}, {"failure", step.failure}};
  }
  json operator()(const ObjectStep& step) const {
    json built = {{"step", "object"},
                  {"kind", kObjectNames[step.surface ? 1 : 0]},
                  {"object", step.object},
                  {"resource", resource_json(step.resource)}};
    if (!step.surface) built["sampler"] = sampler_json(step.sampler);
    if (step.view) built["view"] = step.view->values;
    return built;
  }
  json operator()(const DestroyStep& step) const {
    return {
        {"step", "destroy"}, {"kind", kObjectNames[step.surface ? 1 : 0]}, {"object", step.object}};
  }
  json operator()(const AttributeStep& step) const {
    return {{"step", "attribute"},
            {"module", step.module},
            {"kernel", step.kernel},
            {"attribute", step.attribute},
            {"value", step.value}};
  }
  json operator()(const LimitStep& step) const {
    return {{"step", "limit"}, {"limit", step.limit}, {"value", step.value}};
  }
};

LoadStep load_in(const json& value) {
  LoadStep step;
  step.module = value.at("module").get<std::uint64_t>();
  step.ptx = value.at("ptx").get<std::string>();
  for (const json& one : value.at("variables")) {
    step.variables.push_back({one.at("name").get<std::string>(),
                              one.at("address").get<std::uint64_t>(),
                              one.at("bytes").get<std::uint64_t>()});
  }
  return step;
}

StepArray array_in(const json& value) {
  return {value.at("width").get<std::uint64_t>(),    value.at("height").get<std::uint64_t>(),
          value.at("depth").get<std::uint64_t>(),    value.at("format").get<std::uint32_t>(),
          value.at("channels").get<std::uint32_t>(), value.at("flags").get<std::uint32_t>()};
}

AllocateStep allocate_in(const json& value) {
  AllocateStep step;
  step.address = value.at("address").get<std::uint64_t>();
  step.bytes = value.at("bytes").get<std::uint64_t>();
  step.memory = static_cast<StepMemory>(name_in(value, "memory", kMemoryNames, "kind of memory"));
  if (step.memory == StepMemory::Array) step.array = array_in(value.at("array"));
  step.fill = value.value("fill", std::uint8_t{0});
  step.content = value.value("content", std::string());
  return step;
}

std::vector<StepOutput> outputs_in(const json& value) {
  std::vector<StepOutput> outputs;
  for (const json& one : value) {
    outputs.push_back({one.at(0).get<std::uint64_t>(), one.at(1).get<std::uint64_t>(),
                       one.at(2).get<std::string>()});
  }
  return outputs;
}

LaunchStep launch_step_in(const json& value) {
  LaunchStep step;
  step.module = value.at("module").get<std::uint64_t>();
  step.kernel = value.at("kernel").get<std::string>();
  numbers_in(value.at("grid"), step.grid);
  numbers_in(value.at("block"), step.block);
  numbers_in(value.at("cluster"), step.cluster);
  step.shared_bytes = value.at("shared").get<std::uint32_t>();
  step.cooperative = value.at("cooperative").get<bool>();
  step.arguments = bytes_of_hex(value.at("arguments").get_ref<const std::string&>());
  step.outputs = outputs_in(value.at("outputs"));
  step.failure = value.at("failure").get<std::string>();
  return step;
}

StepResource resource_in(const json& value) {
  StepResource resource;
  resource.kind =
      static_cast<StepResource::Kind>(name_in(value, "kind", kResourceNames, "kind of resource"));
  resource.address = value.at("address").get<std::uint64_t>();
  if (resource.kind == StepResource::Kind::Array) return resource;
  resource.format = value.at("format").get<std::uint32_t>();
  resource.channels = value.at("channels").get<std::uint32_t>();
  resource.width = value.at("width").get<std::uint64_t>();
  if (resource.kind == StepResource::Kind::Linear) return resource;
  resource.height = value.at("height").get<std::uint64_t>();
  resource.pitch = value.at("pitch").get<std::uint64_t>();
  return resource;
}

StepSampler sampler_in(const json& value) {
  StepSampler sampler;
  numbers_in(value.at("address_modes"), sampler.address_modes);
  sampler.filter = value.at("filter").get<std::uint32_t>();
  sampler.flags = value.at("flags").get<std::uint32_t>();
  sampler.anisotropy = value.at("anisotropy").get<std::uint32_t>();
  numbers_in(value.at("border"), sampler.border);
  numbers_in(value.at("mipmap"), sampler.mipmap);
  return sampler;
}

Step object_in(const json& value) {
  ObjectStep step;
  step.surface = name_in(value, "kind", kObjectNames, "kind of object") == 1;
  step.object = value.at("object").get<std::uint64_t>();
  step.resource = resource_in(value.at("resource"));
  if (!step.surface) step.sampler = sampler_in(value.at("sampler"));
  if (value.contains("view")) numbers_in(value.at("view"), step.view.emplace().values);
  return step;
}

VirtualStep virtual_in(const json& value, VirtualStep::Kind kind) {
  return {kind, value.at("address").get<std::uint64_t>(), value.at("bytes").get<std::uint64_t>(),
          value.at("handle").get<std::uint64_t>(), value.at("value").get<std::uint64_t>()};
}

Step destroy_in(const json& value) {
  return DestroyStep{name_in(value, "kind", kObjectNames, "kind of object") == 1,
                     value.at("object").get<std::uint64_t>()};
}

Step attribute_in(const json& value) {
  AttributeStep step;
  step.module = value.at("module").get<std::uint64_t>();
  step.kernel = value.at("kernel").get<std::string>();
  step.attribute = value.at("attribute").get<int>();
  step.value = value.at("value").get<int>();
  return step;
}

Step write_in(const json& value) {
  return WriteStep{rows_in(value.at("to")), value.at("content").get<std::string>(),
                   value.at("unseen").get<bool>()};
}

Step fill_step_in(const json& value) {
  FillStep step{rows_in(value.at("to")), value.at("value").get<std::uint32_t>(),
                value.at("element_bytes").get<std::uint32_t>()};
  const bool fits = step.element_bytes == 1 || step.element_bytes == 2 || step.element_bytes == 4;
  if (fits) return step;
  throw Error(Stage::Io, "bad-recording",
              format_text("element_bytes is {}: 1, 2 or 4 are possible", step.element_bytes));
}

/// Nothing if it is another step.
std::optional<Step> graph_step_in(const json& value, std::string_view name) {
  if (name == "graph_memory") {
    return GraphMemoryStep{value.at("address").get<std::uint64_t>(),
                           value.at("bytes").get<std::uint64_t>()};
  }
  if (name == "begin_graph") return BeginGraphStep{};
  if (name != "end_graph") return std::nullopt;
  return EndGraphStep{outputs_in(value.at("outputs")), value.at("failure").get<std::string>()};
}

Step step_in(const json& value) {
  const auto name = value.at("step").get<std::string>();
  if (name == "load") return load_in(value);
  if (name == "unload") return UnloadStep{value.at("module").get<std::uint64_t>()};
  if (name == "allocate") return allocate_in(value);
  if (name == "free") return FreeStep{value.at("address").get<std::uint64_t>()};
  if (name == "write") return write_in(value);
  if (name == "memcpy") return CopyStep{rows_in(value.at("to")), rows_in(value.at("from"))};
  if (name == "memset") return fill_step_in(value);
  if (name == "read") {
    return ReadStep{rows_in(value.at("from")), value.at("hash").get<std::string>()};
  }
  if (name == "launch") return launch_step_in(value);
  if (name == "object") return object_in(value);
  if (name == "destroy") return destroy_in(value);
  if (name == "attribute") return attribute_in(value);
  if (name == "limit") {
    return LimitStep{value.at("limit").get<int>(), value.at("value").get<std::uint64_t>()};
  }
  if (std::optional<Step> of_graph = graph_step_in(value, name)) return *std::move(of_graph);
  const auto* const call = std::ranges::find(kVirtualNames, name);
  if (call == std::end(kVirtualNames)) refuse_text(name, "step");
  return virtual_in(value, static_cast<VirtualStep::Kind>(call - std::begin(kVirtualNames)));
}

std::vector<std::byte> content_in(const json& value, const std::string& hash) {
  std::vector<std::byte> bytes;
  if (value.contains("text")) {
    const auto& text = value.at("text").get_ref<const std::string&>();
    const auto view = std::as_bytes(std::span(text));
    bytes.assign(view.begin(), view.end());
  } else if (value.contains("fill")) {
    bytes.assign(value.at("size").get<std::size_t>(),
                 std::byte{value.at("fill").get<std::uint8_t>()});
  } else {
    bytes = bytes_of_hex(value.at("bytes").get_ref<const std::string&>());
  }
  const std::string found = hash_text(bytes);
  if (found == hash) return bytes;
  throw Error(Stage::Io, "bad-recording",
              format_text("the content {} has the hash {}: the file was changed", hash, found));
}

// Reads line after line.
class ProgramReader {
 public:
  void read(const json& line) {
    if (line.contains("content") && !line.contains("step")) {
      const auto hash = line.at("content").get<std::string>();
      contents_[hash] = content_in(line, hash);
    } else if (line.contains("step")) {
      add(step_in(line));
    } else if (line.contains("note")) {
      recording_.notes.push_back(line.at("note").get<std::string>());
    } else if (line.contains("end")) {
      recording_.failure = line.at("failure").get<std::string>();
      recording_.cut_off = line.at("cut_off").get<std::string>();
      recording_.hash = line.at("end").get<std::string>();
      ended_ = true;
    } else {
      recording_.made_by = line.at("made_by").get<std::string>();
      recording_.gpu = line.at("gpu").get<std::string>();
    }
  }

  Recording finish() {
    if (recording_.steps.empty()) throw Error(Stage::Io, "bad-recording", "it has no step");
    recording_.frames = recording_.frame_hashes.size() + (recording_.failure.empty() ? 0 : 1);
    const std::string hash = hash_of(recording_.frame_hashes);
    if (ended_ && recording_.hash != hash) {
      throw Error(Stage::Io, "bad-recording",
                  format_text("its launches have the hash {}, and its end says {}: the file was "
                              "changed",
                              hash, recording_.hash));
    }
    recording_.hash = hash;
    if (!ended_) recording_.cut_off = kNoEnd;
    for (auto& [name, bytes] : contents_) recording_.contents.emplace_back(name, std::move(bytes));
    return std::move(recording_);
  }

 private:
  void add_buffer(std::string name, std::uint64_t bytes) {
    RecordedBuffer buffer;
    buffer.name = std::move(name);
    buffer.bytes = bytes;
    recording_.buffers.push_back(std::move(buffer));
  }

  void add(Step step) {
    if (const auto* built = std::get_if<AllocateStep>(&step)) {
      const char* const name = built->memory == StepMemory::Array ? "array" : "memory";
      add_buffer(format_text("{}{}", name, allocations_++), built->bytes);
    }
    if (const auto* loaded = std::get_if<LoadStep>(&step)) {
      for (const StepVariable& one : loaded->variables) add_buffer(one.name, one.bytes);
    }
    if (const std::vector<StepOutput>* const outputs = frames_.outputs_of(step)) {
      recording_.frame_hashes.push_back(to_hex(hash128(text_of_outputs(*outputs))));
    }
    recording_.steps.push_back(std::move(step));
  }

  Recording recording_;
  std::map<std::string, std::vector<std::byte>> contents_;
  std::uint64_t allocations_ = 0;
  FrameSteps frames_;
  bool ended_ = false;
};

}  // namespace

std::string header_line(std::string_view made_by, std::string_view gpu) {
  return line_of({{"format", kProgramFormat}, {"made_by", made_by}, {"gpu", gpu}});
}

std::string content_line(std::string_view hash, std::span<const std::byte> bytes) {
  json line = {{"content", hash}};
  const auto* const characters = reinterpret_cast<const char*>(bytes.data());
  const std::string_view text(characters, bytes.size());
  // PTX remains readable.
  const bool is_text = std::ranges::all_of(
      text, [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t' || c == '\r'; });
  if (!bytes.empty() && std::ranges::count(bytes, bytes.front()) == std::ssize(bytes)) {
    line["fill"] = std::to_integer<unsigned>(bytes.front());
    line["size"] = bytes.size();
  } else if (is_text) {
    line["text"] = text;
  } else {
    line["bytes"] = hex_of(bytes);
  }
  return line_of(line);
}

std::string step_line(const Step& step) { return line_of(std::visit(StepJson{}, step)); }

std::string note_line(std::string_view text) { return line_of({{"note", text}}); }

std::string end_line(std::string_view failure, std::string_view cut_off, std::string_view hash) {
  return line_of({{"end", hash}, {"failure", failure}, {"cut_off", cut_off}});
}

const std::vector<StepOutput>* FrameSteps::outputs_of(const Step& step) noexcept {
  if (std::holds_alternative<BeginGraphStep>(step)) in_graph_ = true;
  if (const auto* const end = std::get_if<EndGraphStep>(&step)) {
    in_graph_ = false;
    return end->failure.empty() ? &end->outputs : nullptr;
  }
  const auto* const launch = std::get_if<LaunchStep>(&step);
  return launch != nullptr && !in_graph_ && launch->failure.empty() ? &launch->outputs : nullptr;
}

std::string text_of_outputs(std::span<const StepOutput> outputs) {
  std::string text;
  for (const StepOutput& one : outputs) {
    text += format_text("{}:{}:{};", one.address, one.bytes, one.hash);
  }
  return text;
}

bool is_program_text(std::string_view text) noexcept {
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.find(kProgramFormat) != std::string_view::npos;
}

Recording parse_program(std::string_view text) {
  ProgramReader reader;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    // The program died while it wrote its last line.
    if (end == std::string_view::npos) break;
    try {
      reader.read(json::parse(text.substr(0, end)));
    } catch (const json::exception& error) {
      throw Error(Stage::Io, "bad-recording", format_text("line {}: {}", number, error.what()));
    } catch (const Error& error) {
      throw Error(Stage::Io, "bad-recording", format_text("line {}: {}", number, error.message));
    }
    text.remove_prefix(end + 1);
  }
  return reader.finish();
}

std::string program_text(const Recording& recording) {
  std::string text = header_line(recording.made_by, recording.gpu);
  for (const auto& [hash, bytes] : recording.contents) text += content_line(hash, bytes);
  for (const std::string& note : recording.notes) text += note_line(note);
  for (const Step& step : recording.steps) text += step_line(step);
  if (recording.cut_off != kNoEnd) {
    text += end_line(recording.failure, recording.cut_off, recording.hash);
  }
  return text;
}

const std::vector<std::byte>* find_content(const Recording& recording,
                                           std::string_view hash) noexcept {
  const auto found =
      std::ranges::lower_bound(recording.contents, hash, {},
                               [](const auto& content) { return std::string_view(content.first); });
  return found != recording.contents.end() && found->first == hash ? &found->second : nullptr;
}

namespace {

unsigned digit_of(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a' + 10);
  throw Error(Stage::Io, "bad-recording", format_text("'{}' is no hexadecimal digit", digit));
}

}  // namespace

std::string hex_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::vector<std::byte> bytes_of_hex(std::string_view text) {
  if (text.size() % 2 != 0) {
    throw Error(Stage::Io, "bad-recording", "an odd number of hexadecimal digits");
  }
  std::vector<std::byte> bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(digit_of(text[2 * i]) << 4 | digit_of(text[2 * i + 1]));
  }
  return bytes;
}

}  // namespace ptxgen::inline v0
