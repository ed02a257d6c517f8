const { createRequire } = require('node:module');
const { isAbsolute } = require('node:path');
const { compileFunction } = require('node:vm');
const { default: JestRuntime } = require('jest-runtime');

// Jest loads every package anew for each test file. That took up to a second of CPU per file, in some 300 files.

const requireOf = new Map();
const compiled = new Map();

/** Packages that tests need anew: the SDK of Temporal installs its runtime once per copy of the package. */
const loadedPerFile = new Set(['@temporalio/worker']);

const isPackage = (name) => !name.startsWith('.') && !isAbsolute(name) && !name.includes(':');

/**
 * A runtime of Jest that loads packages once per process, with Node. Modules of exportd and of tests run anew for each test
 * file, so that files share no state of theirs, but they are compiled once. It needs jest_environment.cjs.
 */
class SharedPackagesRuntime extends JestRuntime {
  constructor(...options) {
    super(...options);
    const { executor } = this;
    executor.compile = (source, filename) => {
      const known = compiled.get(filename);
      if (known?.source === source) return known.run;
      const run = compileFunction(source, executor.injectedModuleParameters, { filename });
      compiled.set(filename, { source, run });
      return run;
    };
  }

  requireModule(from, name, options, isRequireActual) {
    const shared =
      name !== undefined &&
      options?.isInternalModule !== true &&
      isPackage(name) &&
      !loadedPerFile.has(name) &&
      !this._resolution.isCoreModule(name);
    if (!shared) return super.requireModule(from, name, options, isRequireActual);
    const found = requireOf.get(from) ?? createRequire(from);
    requireOf.set(from, found);
    return found(name);
  }
}

module.exports = SharedPackagesRuntime;
