// A shared library that registers no model.
extern "C" int piper_test_no_model() {
  return 0;
}
