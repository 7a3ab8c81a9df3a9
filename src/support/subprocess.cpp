// src/support/subprocess.cpp - running another program
#include "support/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

namespace {

using Clock = std::chrono::steady_clock;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { reset(); }
  void reset() {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }
  [[nodiscard]] int get() const { return value_; }
  [[nodiscard]] bool is_open() const { return value_ >= 0; }

 private:
  int value_ = -1;
};

std::string error_text(int number) { return std::generic_category().message(number); }

[[noreturn]] void fail(int number, const std::string& program, const std::string& what) {
  Error error(Stage::Io, number == ENOENT ? "not-found" : "spawn",
              "cannot run " + program + ": " + what + ": " + error_text(number));
  error.driver_status = number;
  throw error.refresh();
}

std::pair<Descriptor, Descriptor> make_pipe(const std::string& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(errno, program, "no pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// posix_spawn's two option objects, freed on every path.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

pid_t start(const std::vector<std::string>& argv, const SubprocessOptions& options,
            const Descriptor& out, const Descriptor& err) {
  SpawnSetup setup;
  ::posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&setup.actions, out.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&setup.actions, err.get(), STDERR_FILENO);
  if (!options.folder.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&setup.actions, options.folder.c_str());
  }
  // Its own process group, so that a timeout also ends what the program has started; and plain
  // signal handling, whatever the host process has blocked or ignored.
  sigset_t none;
  sigemptyset(&none);
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  ::posix_spawnattr_setpgroup(&setup.attributes, 0);
  ::posix_spawnattr_setsigmask(&setup.attributes, &none);
  ::posix_spawnattr_setsigdefault(&setup.attributes, &pipe_signal);
  ::posix_spawnattr_setflags(
      &setup.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int status = ::posix_spawn(&child, argv[0].c_str(), &setup.actions, &setup.attributes,
                                   arguments.data(), environ);
  if (status != 0) fail(status, argv[0], "could not start");
  return child;
}

/// Appends what is there to read; closes `from` at its end.
void read_some(Descriptor& from, std::string& into) {
  std::array<char, 65536> block;
  const ssize_t got = ::read(from.get(), block.data(), block.size());
  if (got > 0) {
    into.append(block.data(), static_cast<std::size_t>(got));
  } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
    from.reset();
  }
}

/// Reads both pipes for at most `patience`; false when nothing was there.
bool pump(Descriptor& out, Descriptor& err, SubprocessResult& result,
          std::chrono::milliseconds patience) {
  // poll skips negative descriptors.
  std::array<pollfd, 2> watched{{{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}}};
  if (::poll(watched.data(), watched.size(), static_cast<int>(patience.count())) <= 0) return false;
  if (watched[0].revents != 0) read_some(out, result.out);
  if (watched[1].revents != 0) read_some(err, result.err);
  return true;
}

}  // namespace

SubprocessResult run_program(const std::vector<std::string>& argv,
                             const SubprocessOptions& options) {
  if (argv.empty() || argv[0].empty()) fail(EINVAL, "a program", "no name given");
  auto [out_read, out_write] = make_pipe(argv[0]);
  auto [err_read, err_write] = make_pipe(argv[0]);
  const pid_t child = start(argv, options, out_write, err_write);
  out_write.reset();
  err_write.reset();

  SubprocessResult result;
  const Clock::time_point deadline = Clock::now() + options.timeout;
  int status = 0;
  std::chrono::microseconds nap{50};
  for (;;) {
    using std::chrono::milliseconds;
    if (!result.timed_out && Clock::now() >= deadline) {
      result.timed_out = true;
      ::kill(-child, SIGKILL);
    }
    if (out_read.is_open() || err_read.is_open()) {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
      // Short naps, since a grandchild can hold the pipes open after the program has ended.
      if (pump(out_read, err_read, result, std::clamp(left, milliseconds(0), milliseconds(20)))) {
        continue;
      }
    } else {
      std::this_thread::sleep_for(nap);
      nap = std::min(nap * 2, std::chrono::microseconds(5000));
    }
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) fail(errno, argv[0], "its exit status is lost");
  }
  while ((out_read.is_open() || err_read.is_open()) &&
         pump(out_read, err_read, result, std::chrono::milliseconds(0))) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace ptxgen::inline v0
