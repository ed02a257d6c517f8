const { LegacyFakeTimers, ModernFakeTimers } = require('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock');
const { ChildProcess } = require('node:child_process');
const { performance } = require('node:perf_hooks');
const { setTimeout: delay } = require('node:timers/promises');
const { createContext, runInContext } = require('node:vm');
// Defines the global function `runInProcess`, which the code of all test files calls.
require('./jest_transformer.cjs');

// A worker of Jest that has nothing left to do exits without freeing its heap. That took about half a second on a busy
// machine, after which Jest kills the worker and reports a leak.
if (process.send !== undefined) process.once('beforeExit', () => process.exit());

/** Names of all that can be redefined: not `undefined` and `NaN`. */
const namesOfGlobals = Object.entries(Object.getOwnPropertyDescriptors(globalThis))
  .filter(([name, { configurable }]) => configurable && name !== 'globalThis')
  .map(([name]) => name);

const isSignal = (event) => typeof event === 'string' && event.startsWith('SIG');

/** The listeners of the process's signals and output streams: [emitter, event, listener]. */
const listenersOfProcess = () =>
  [process, process.stdout, process.stderr].flatMap((emitter) =>
    emitter
      .eventNames()
      .filter((event) => emitter !== process || isSignal(event))
      .flatMap((event) => emitter.rawListeners(event).map((listener) => [emitter, event, listener])),
  );

/** The child processes of the process that have not exited. */
const children = new Set();
const { spawn } = ChildProcess.prototype;
ChildProcess.prototype.spawn = function (...parameters) {
  const result = spawn.apply(this, parameters);
  if (this.pid !== undefined) {
    children.add(this);
    this.once('exit', () => children.delete(this));
  }
  return result;
};

/** How long a process that was sent a signal may take to exit. */
const exitTimeoutMs = 60_000;

/** A reader of foreign bytes ends when it was idle for a while, and with the process that started it. */
const endsByItself = ({ spawnargs }) =>
  spawnargs.some((argument) => argument.endsWith('foreign_bytes_process.ts'));

/** Waits for the child processes that were sent a signal, and kills the others. @returns the commands of those */
async function endChildren() {
  const signalled = [...children].filter((child) => child.killed);
  const deadline = performance.now() + exitTimeoutMs;
  while (signalled.some((child) => children.has(child)) && performance.now() < deadline) await delay(20);
  const left = [...children];
  for (const child of left) {
    children.delete(child);
    child.kill('SIGKILL');
  }
  return left.filter((child) => !endsByItself(child)).map(({ spawnargs }) => spawnargs.join(' '));
}

/**
 * A test environment for modules that run in the context of the process (jest_transformer.cjs). Only Jest itself runs in
 * another one. After each file it restores the environment variables, the exit code and the listeners, of which Node
 * prints a warning once eleven files have left one each. It ends the processes that a file has left, and fails the file.
 */
class ProcessEnvironment {
  constructor({ projectConfig: config }) {
    this.variables = { ...process.env };
    this.exitCode = process.exitCode;
    this.listeners = new Set(listenersOfProcess().map(([, , listener]) => listener));
    // Jest and `expect` run here, with the classes of the process: `expect.any(String)` means the String of the test.
    this.context = createContext();
    this.global = runInContext('globalThis', this.context);
    for (const name of namesOfGlobals) this.global[name] = globalThis[name];
    this.global.global = this.global;
    // Jest replaces `process.exit` here.
    this.global.process = Object.create(process);
    this.moduleMocker = new ModuleMocker(globalThis);
    const timerConfig = { idToRef: (id) => id, refToId: (ref) => ref };
    const options = { config, global: globalThis };
    this.fakeTimers = new LegacyFakeTimers({ ...options, moduleMocker: this.moduleMocker, timerConfig });
    this.fakeTimersModern = new ModernFakeTimers(options);
  }

  setup() {
    return Promise.resolve();
  }

  async teardown() {
    this.fakeTimers.dispose();
    this.fakeTimersModern.dispose();
    const left = await endChildren();
    for (const name of Object.keys(process.env))
      if (!(name in this.variables)) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, this.variables);
    process.exitCode = this.exitCode;
    for (const [emitter, event, listener] of listenersOfProcess())
      if (!this.listeners.has(listener)) emitter.removeListener(event, listener);
    if (left.length > 0)
      throw new Error(`The file has left processes, which were killed:\n${left.join('\n')}`);
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return this.context;
  }
}

module.exports = ProcessEnvironment;
