const { createRequire, isBuiltin } = require('node:module');
const { default: runTestFile } = require('jest-circus/runner');

/** Packages with the state of a test file, such as its matchers. Its tests and hooks are in jest-circus, which is loaded by path. */
const withState = new Set(['@jest/expect', 'expect']);

const isAnew = (name) => name.startsWith('.') || isBuiltin(name) || withState.has(name);

/**
 * The runner of Jest. For each test file it loads its own packages anew: 60 modules that print, compare and store values. Here
 * only those with state are; the others are the ones that Jest itself uses in the process.
 */
module.exports = (globalConfig, config, environment, runtime, ...others) => {
  const requireAnew = runtime.requireInternalModule.bind(runtime);
  runtime.requireInternalModule = (from, name) =>
    name === undefined || isAnew(name) ? requireAnew(from, name) : createRequire(from)(name);
  return runTestFile(globalConfig, config, environment, runtime, ...others);
};
