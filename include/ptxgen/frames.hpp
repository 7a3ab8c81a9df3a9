// ptxgen/frames.hpp - launches as frames of text, their assertions, a debugger
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/frames/checks.hpp"
#include "ptxgen/frames/debugger.hpp"
#include "ptxgen/frames/frame.hpp"
#include "ptxgen/frames/recorder.hpp"
#include "ptxgen/frames/tracker.hpp"
#include "ptxgen/frames/watch.hpp"
