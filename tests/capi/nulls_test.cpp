// tests/capi/nulls_test.cpp - every function with NULL, with wrong handles, with nothing
#include <functional>
#include <map>

#include "capi/capi.hpp"

using namespace ptxgen::test;

namespace {

using Call = std::function<ptxgen_status()>;

/// Every function that returns a status and takes pointers, with nothing but NULL.
std::map<std::string, Call> all_null() {
  const ptxgen_span none{0, 0};
  return {
      {"device_open", [] { return ptxgen_device_open("emulator", nullptr, nullptr); }},
      {"list_devices", [] { return ptxgen_list_devices(nullptr, 0, nullptr); }},
      {"list_devices infos",
       [] {
         std::size_t count = 0;
         return ptxgen_list_devices(nullptr, 3, &count);
       }},
      {"device_get_info", [] { return ptxgen_device_get_info(nullptr, nullptr); }},
      {"device_memory", [] { return ptxgen_device_memory(nullptr, nullptr, nullptr); }},
      {"device_synchronize", [] { return ptxgen_device_synchronize(nullptr); }},
      {"device_poisoned", [] { return ptxgen_device_poisoned(nullptr, nullptr); }},
      {"findings_create", [] { return ptxgen_findings_create(nullptr, nullptr); }},
      {"findings_get", [] { return ptxgen_findings_get(nullptr, 0, nullptr); }},
      {"device_count_findings",
       [] { return ptxgen_device_count_findings(nullptr, nullptr, nullptr, nullptr); }},
      {"device_clear_findings", [] { return ptxgen_device_clear_findings(nullptr); }},
      {"device_get_counters", [] { return ptxgen_device_get_counters(nullptr, nullptr); }},
      {"device_clear_counters", [] { return ptxgen_device_clear_counters(nullptr); }},
      {"check", [] { return ptxgen_check(nullptr, 0, nullptr, nullptr, nullptr); }},
      {"program_optimize", [] { return ptxgen_program_optimize(nullptr, nullptr, nullptr); }},
      {"program_get_pass", [] { return ptxgen_program_get_pass(nullptr, 0, nullptr); }},
      {"program_assemble_with",
       [] { return ptxgen_program_assemble_with(nullptr, nullptr, nullptr, nullptr); }},
      {"image_get_kernel", [] { return ptxgen_image_get_kernel(nullptr, 0, nullptr); }},
      {"function_get_argument", [] { return ptxgen_function_get_argument(nullptr, 0, nullptr); }},
      {"device_on_finding", [] { return ptxgen_device_on_finding(nullptr, nullptr, nullptr); }},
      {"buffer_create", [] { return ptxgen_buffer_create(nullptr, 1, nullptr); }},
      {"buffer_write", [] { return ptxgen_buffer_write(nullptr, 0, nullptr, 0, nullptr); }},
      {"buffer_read", [] { return ptxgen_buffer_read(nullptr, 0, nullptr, 0, nullptr); }},
      {"buffer_copy", [] { return ptxgen_buffer_copy(nullptr, 0, nullptr, 0, 0, nullptr); }},
      {"buffer_fill", [] { return ptxgen_buffer_fill(nullptr, 0, 0, 1, 0, nullptr); }},
      {"stream_create", [] { return ptxgen_stream_create(nullptr, 0, 0, nullptr); }},
      {"stream_borrow", [] { return ptxgen_stream_borrow(nullptr, nullptr, nullptr); }},
      {"stream_synchronize", [] { return ptxgen_stream_synchronize(nullptr); }},
      {"stream_done", [] { return ptxgen_stream_done(nullptr, nullptr); }},
      {"stream_wait", [] { return ptxgen_stream_wait(nullptr, nullptr); }},
      {"stream_record", [] { return ptxgen_stream_record(nullptr, nullptr); }},
      {"event_create", [] { return ptxgen_event_create(nullptr, 1, nullptr); }},
      {"event_synchronize", [] { return ptxgen_event_synchronize(nullptr); }},
      {"event_done", [] { return ptxgen_event_done(nullptr, nullptr); }},
      {"event_milliseconds", [] { return ptxgen_event_milliseconds(nullptr, nullptr, nullptr); }},
      {"stream_begin_capture", [] { return ptxgen_stream_begin_capture(nullptr, 0); }},
      {"stream_end_capture", [] { return ptxgen_stream_end_capture(nullptr, nullptr); }},
      {"stream_capturing", [] { return ptxgen_stream_capturing(nullptr, nullptr); }},
      {"graph_launch", [] { return ptxgen_graph_launch(nullptr, nullptr); }},
      {"kernel_get_info", [] { return ptxgen_kernel_get_info(0, nullptr); }},
      {"kernel_get_parameter", [] { return ptxgen_kernel_get_parameter(0, 0, nullptr); }},
      {"program_build",
       [] { return ptxgen_program_build(nullptr, nullptr, nullptr, nullptr, 0, nullptr); }},
      {"program_parse", [] { return ptxgen_program_parse(nullptr, 0, nullptr, nullptr); }},
      {"program_compile_cuda",
       [] {
         return ptxgen_program_compile_cuda(nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr);
       }},
      {"program_geometry", [] { return ptxgen_program_geometry(nullptr, nullptr); }},
      {"program_assemble",
       [] { return ptxgen_program_assemble(nullptr, nullptr, nullptr, nullptr); }},
      {"image_get_info", [] { return ptxgen_image_get_info(nullptr, nullptr); }},
      {"module_load", [] { return ptxgen_module_load(nullptr, nullptr, nullptr); }},
      {"module_load_image", [] { return ptxgen_module_load_image(nullptr, nullptr, 0, nullptr); }},
      {"module_function", [] { return ptxgen_module_function(nullptr, nullptr, nullptr); }},
      {"module_variable", [] { return ptxgen_module_variable(nullptr, nullptr, nullptr); }},
      {"function_load", [] { return ptxgen_function_load(nullptr, nullptr, nullptr, nullptr); }},
      {"function_get_info", [] { return ptxgen_function_get_info(nullptr, nullptr); }},
      {"function_occupancy", [] { return ptxgen_function_occupancy(nullptr, 1, 0, nullptr); }},
      {"function_launch",
       [] { return ptxgen_function_launch(nullptr, nullptr, nullptr, 0, nullptr); }},
      {"function_launch_packed",
       [] { return ptxgen_function_launch_packed(nullptr, nullptr, nullptr, 0, nullptr); }},
      {"gemv", [=] { return ptxgen_gemv(nullptr, none, none, none, 1, 1, nullptr, nullptr); }},
      {"gemv_any", [=] { return ptxgen_gemv_any(nullptr, nullptr, nullptr, nullptr, nullptr); }},
      {"plan_gemv_any",
       [=] { return ptxgen_plan_gemv_any(nullptr, nullptr, nullptr, nullptr, nullptr); }},
      {"matmul",
       [=] {
         return ptxgen_matmul(nullptr, none, none, none, {1, 1, 1}, nullptr, nullptr);
       }},
      {"launch",
       [] { return ptxgen_launch(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr); }},
      {"plan_create",
       [] {
         return ptxgen_plan_create(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr);
       }},
      {"kernel_get_operand", [] { return ptxgen_kernel_get_operand(0, 0, nullptr); }},
      {"plan_gemv",
       [=] { return ptxgen_plan_gemv(nullptr, none, none, none, 1, 1, nullptr, nullptr); }},
      {"plan_launch", [] { return ptxgen_plan_launch(nullptr, nullptr); }},
      {"plan_record", [] { return ptxgen_plan_record(nullptr, nullptr); }},
      {"prepare", [] { return ptxgen_prepare(nullptr, nullptr, 0, nullptr, nullptr); }},
      {"cache_get_statistics", [] { return ptxgen_cache_get_statistics(nullptr, nullptr); }},
      {"cache_clear", [] { return ptxgen_cache_clear(nullptr); }},
      {"model_open", [] { return ptxgen_model_open(nullptr, nullptr, nullptr, nullptr, nullptr); }},
      {"model_get_info", [] { return ptxgen_model_get_info(nullptr, nullptr); }},
      {"model_tokenize",
       [] { return ptxgen_model_tokenize(nullptr, nullptr, 0, 0, nullptr, 0, nullptr); }},
      {"model_detokenize",
       [] { return ptxgen_model_detokenize(nullptr, nullptr, 0, nullptr, 0, nullptr); }},
      {"model_is_end", [] { return ptxgen_model_is_end(nullptr, 0, nullptr); }},
      {"model_chat", [] { return ptxgen_model_chat(nullptr, nullptr, 0, nullptr, 0, nullptr); }},
      {"session_create", [] { return ptxgen_session_create(nullptr, nullptr, nullptr); }},
      {"session_prefill", [] { return ptxgen_session_prefill(nullptr, 0, nullptr, 0); }},
      {"session_decode", [] { return ptxgen_session_decode(nullptr, nullptr, 0); }},
      {"session_logits", [] { return ptxgen_session_logits(nullptr, 0, nullptr, 0, nullptr); }},
      {"session_greedy", [] { return ptxgen_session_greedy(nullptr, 0, nullptr); }},
      {"session_position", [] { return ptxgen_session_position(nullptr, 0, nullptr); }},
      {"session_truncate", [] { return ptxgen_session_truncate(nullptr, 0, 0); }},
      {"session_save", [] { return ptxgen_session_save(nullptr, nullptr, 0, nullptr); }},
      {"session_restore", [] { return ptxgen_session_restore(nullptr, nullptr, 0); }},
      {"session_observe", [] { return ptxgen_session_observe(nullptr, nullptr, nullptr); }},
      {"session_generate",
       [] {
         return ptxgen_session_generate(nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr);
       }},
      {"stages", [] { return ptxgen_stages(nullptr, nullptr, nullptr, 0, nullptr); }},
  };
}

}  // namespace

TEST_CASE("NULL is refused by every function, with words", "[capi]") {
  for (const auto& [name, call] : all_null()) {
    INFO(name);
    CHECK(call() == PTXGEN_ERROR_USAGE);
    CHECK(error_code(nullptr) == "null");
    CHECK(error_text(nullptr).find(" is NULL") != std::string::npos);
  }
}

TEST_CASE("functions without a status answer NULL with nothing", "[capi]") {
  ptxgen_device_free(nullptr);
  ptxgen_buffer_free(nullptr);
  ptxgen_stream_free(nullptr);
  ptxgen_event_free(nullptr);
  ptxgen_graph_free(nullptr);
  ptxgen_program_free(nullptr);
  ptxgen_image_free(nullptr);
  ptxgen_module_free(nullptr);
  ptxgen_function_free(nullptr);
  ptxgen_plan_free(nullptr);
  ptxgen_model_free(nullptr);
  ptxgen_session_free(nullptr);
  ptxgen_error_free(nullptr);
  CHECK(ptxgen_buffer_span(nullptr).address == 0);
  CHECK(ptxgen_buffer_span(nullptr).bytes == 0);
  CHECK(ptxgen_stream_cuda(nullptr) == nullptr);
  CHECK(ptxgen_graph_nodes(nullptr) == 0);
  std::size_t bytes = 7;
  CHECK(std::string(ptxgen_program_ptx(nullptr, &bytes)).empty());
  CHECK(bytes == 0);
  CHECK(std::string(ptxgen_program_ptx(nullptr, nullptr)).empty());
  CHECK(std::string(ptxgen_program_log(nullptr)).empty());
  CHECK(ptxgen_program_entry_count(nullptr) == 0);
  CHECK(ptxgen_program_pass_count(nullptr) == 0);
  CHECK(ptxgen_image_kernel_count(nullptr) == 0);
  CHECK(ptxgen_buffer_host(nullptr) == nullptr);
  CHECK(ptxgen_program_entry(nullptr, 0) == nullptr);
  CHECK(std::string(ptxgen_module_log(nullptr)).empty());
  CHECK(std::string(ptxgen_cache_folder(nullptr)).empty());
  ptxgen_version(nullptr, nullptr, nullptr);
}

TEST_CASE("a handle of another kind is refused by name", "[capi]") {
  OwnedDevice device;
  open_emulator(device);
  OwnedBuffer buffer;
  good(ptxgen_buffer_create(device, 16, &buffer), device);
  OwnedProgram program;
  parse_saxpy(program);
  const auto as_stream = [](const auto& handle) {
    return reinterpret_cast<ptxgen_stream*>(handle.handle);
  };
  CHECK(ptxgen_stream_synchronize(as_stream(buffer)) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(buffer) == "stream is the handle of a buffer; expected a stream");
  char bytes[16] = {};
  CHECK(ptxgen_buffer_write(buffer, 0, bytes, 16, as_stream(program)) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(buffer) == "stream is the handle of a program; expected a stream");
  CHECK(ptxgen_stream_cuda(as_stream(buffer)) == nullptr);
  CHECK(ptxgen_graph_nodes(reinterpret_cast<ptxgen_graph*>(buffer.handle)) == 0);
  CHECK(std::string(ptxgen_cache_folder(reinterpret_cast<ptxgen_device*>(buffer.handle))).empty());
  CHECK(ptxgen_program_entry_count(reinterpret_cast<ptxgen_program*>(buffer.handle)) == 0);
}

TEST_CASE("results are NULL after a failure", "[capi]") {
  auto* const garbage = reinterpret_cast<ptxgen_device*>(std::uintptr_t{0x10});
  ptxgen_device* device = garbage;
  CHECK(ptxgen_device_open("toaster", nullptr, &device) != PTXGEN_OK);
  CHECK(device == nullptr);
  auto* program = reinterpret_cast<ptxgen_program*>(std::uintptr_t{0x10});
  CHECK(ptxgen_program_parse("?", 1, nullptr, &program) == PTXGEN_ERROR_VERIFY);
  CHECK(program == nullptr);
  program = reinterpret_cast<ptxgen_program*>(std::uintptr_t{0x10});
  CHECK(ptxgen_program_build(nullptr, "sm_80", "nothing", nullptr, 0, &program) ==
        PTXGEN_ERROR_BUILD);
  CHECK(program == nullptr);
}
