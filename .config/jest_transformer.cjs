const { createHash } = require('node:crypto');
const { createRequire, isBuiltin } = require('node:module');
const { isAbsolute } = require('node:path');
const { compileFunction } = require('node:vm');
const { createTransformer } = require('@swc/jest');

// Jest loads every package anew for each test file, which takes up to a second of CPU per file. Here Node loads packages
// once per process. Modules of exportd and of tests still run anew for each test file, so that files share no state.

// No .swcrc: Temporal's bundler would read it too.
const swc = createTransformer({
  swcrc: false,
  jsc: { target: 'es2024', parser: { syntax: 'typescript' } },
  module: { type: 'commonjs' },
  sourceMaps: true,
});

/** Packages that Jest loads: its own, and Temporal's worker, which installs its runtime once per copy of the package. */
const loadedPerFile = ['@jest/globals', '@temporalio/worker'];

const isShared = (name) =>
  !name.startsWith('.') &&
  !isAbsolute(name) &&
  !name.includes(':') &&
  !isBuiltin(name) &&
  !loadedPerFile.includes(name);

const parameters = ['module', 'exports', 'require', '__dirname', '__filename'];
const compiled = new Map();

/**
 * Runs a module in the context of the process, where errors and arrays have the classes that packages know. It is compiled
 * once per process. Node loads the packages that it imports, Jest all else.
 */
function runInProcess(code, loaded, jestRequire) {
  const { exports, path, filename } = loaded;
  let known = compiled.get(filename);
  if (known?.code !== code) {
    known = {
      code,
      run: compileFunction(code, parameters, { filename }),
      nodeRequire: createRequire(filename),
    };
    compiled.set(filename, known);
  }
  const { run, nodeRequire } = known;
  const requireEither = (name) => (isShared(name) ? nodeRequire(name) : jestRequire(name));
  run.call(exports, loaded, exports, Object.assign(requireEither, jestRequire), path, filename);
}

/** The code that Jest runs in place of a module. */
const callWith = (code) => `runInProcess(${JSON.stringify(code)}, module, require);`;

// For the global set-up. Test files find it in the environment (jest_environment.cjs).
globalThis.runInProcess = runInProcess;

module.exports = {
  process(source, filename, options) {
    const isPackage = filename.includes('/node_modules/');
    const { code, map } = isPackage ? { code: source } : swc.process(source, filename, options);
    return { code: callWith(code), map };
  },
  getCacheKey(...input) {
    return createHash('sha1')
      .update(swc.getCacheKey(...input))
      .update(callWith(''))
      .digest('hex');
  },
};
