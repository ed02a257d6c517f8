const { TestEnvironment } = require('jest-environment-node');

/**
 * Classes that the sandbox of a test file must have in common with the packages, which run outside of it: a package's error
 * is then an `instanceof Error`, and a test's date is a date for a package.
 */
const commonClasses = [
  ...['Error', 'AggregateError', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError'],
  ...['URIError', 'Date', 'Map', 'Set', 'WeakMap', 'WeakSet', 'JSON', 'Promise', 'RegExp'],
];

/** Jest's environment of Node, with packages that all test files of a process share (shared_packages.cjs). */
module.exports = class SharedPackagesEnvironment extends TestEnvironment {
  constructor(...options) {
    super(...options);
    for (const name of commonClasses) this.global[name] = globalThis[name];
    this.global.requireShared = require;
  }

  async setup() {
    await super.setup();
    globalThis.sharesPackages = true;
  }

  async teardown() {
    globalThis.sharesPackages = false;
    await super.teardown();
  }
};
