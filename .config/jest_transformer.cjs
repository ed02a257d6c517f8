const { createHash } = require('node:crypto');
const Module = require('node:module');
const { createRequire, isBuiltin } = Module;
const { isAbsolute, join, sep } = require('node:path');
const { compileFunction } = require('node:vm');
const { createTransformer } = require('@swc/jest');

// Jest loads every module anew for each test file, which takes up to two seconds of CPU per file. Here Node loads packages
// and modules of exportd once per process, as in production: they keep no state of their own but caches. Modules of tests
// run anew for each test file.

// No .swcrc: Temporal's bundler would read it too.
const swc = createTransformer({
  swcrc: false,
  jsc: { target: 'es2024', parser: { syntax: 'typescript' } },
  module: { type: 'commonjs' },
  sourceMaps: true,
});

const folderOf = (path) => join(module.path, '..', path) + sep;
/** The folders of exportd's own modules. */
const product = ['src', 'activities', 'workflows'].map(folderOf);
const testsOfDialect = folderOf('src/dialect/test');

const isProduct = (path) =>
  product.some((folder) => path.startsWith(folder)) && !path.startsWith(testsOfDialect);

/** Whether a module of the folder `path` gets `name` from Node, which loads it once per process. */
const isShared = (name, path) =>
  name.startsWith('.')
    ? isProduct(join(path, name))
    : !isAbsolute(name) && !name.includes(':') && !isBuiltin(name) && name !== '@jest/globals';

/** How Node loads modules. Jest replaces it while it runs the global set-up. */
const loadsOfNode = { ...Module._extensions };

/**
 * Lets Node load a module of exportd. One that the global set-up loaded by Jest stayed in the cache of Node's `require`, and was
 * another one than its importers have: a class of it was two where a single test file runs in the process of Jest itself.
 */
function requireByNode(nodeRequire, name) {
  const current = { ...Module._extensions };
  for (const extension of Object.keys(current)) Reflect.deleteProperty(Module._extensions, extension);
  Object.assign(Module._extensions, loadsOfNode);
  try {
    return nodeRequire(name);
  } finally {
    Object.assign(Module._extensions, current);
  }
}

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
  const requireEither = (name) =>
    isShared(name, path) ? requireByNode(nodeRequire, name) : jestRequire(name);
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
