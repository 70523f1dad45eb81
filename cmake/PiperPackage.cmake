# The Debian package, which `./dev package` makes with CPack. What it depends on is what its binaries are linked to, save
# LibTorch, which is no package: the program finds it (docs/install.md).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME piper)
set(CPACK_PACKAGE_VENDOR "Piper")
set(CPACK_PACKAGE_CONTACT "The authors of Piper")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "Needs LibTorch to train, which pip brings: pip install torch==${PIPER_LIBTORCH_VERSION}")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-venv, cmake, g++")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PIPER_LIBTORCH_LIBDIR}" "${PROJECT_BINARY_DIR}/lib")
install(FILES LICENSE DESTINATION share/doc/piper RENAME copyright)
include(CPack)
