// Loading the packages takes Jest a second of CPU for each test file, in some 300 files.

/**
 * A transformer of Jest that shares the packages between the test files of a process: it replaces a module of a package with
 * one line that requires it from Node. Modules of exportd and of tests still run anew for each test file. `requireShared` and
 * `sharesPackages` come from test_environment.cjs; Jest's own modules and the global set-up are read while it is false.
 */
module.exports = {
  process: (source, file) => ({
    code: globalThis.sharesPackages ? `module.exports = requireShared(${JSON.stringify(file)});` : source,
  }),
  getCacheKey: (source, file) =>
    globalThis.sharesPackages ? `shared ${file}` : `${file} of ${String(source.length)} characters`,
};
