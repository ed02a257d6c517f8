const { LegacyFakeTimers, ModernFakeTimers } = require('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock');

/** Keys of Jest's state in the global object, which its sandbox would discard after each file. */
const stateOfJest = [
  'EVENT_HANDLERS',
  '$$jest-matchers-object',
  'TEST_TIMEOUT_SYMBOL',
  'RETRY_TIMES',
  'RETRY_IMMEDIATELY',
  'WAIT_BEFORE_RETRY',
  'LOG_ERRORS_BEFORE_RETRY',
];

const isSignal = (event) => typeof event === 'string' && event.startsWith('SIG');

/** The listeners of the process's signals and output streams: [emitter, event, listener]. */
const listenersOfProcess = () =>
  [process, process.stdout, process.stderr].flatMap((emitter) =>
    emitter
      .eventNames()
      .filter((event) => emitter !== process || isSignal(event))
      .flatMap((event) => emitter.rawListeners(event).map((listener) => [emitter, event, listener])),
  );

/**
 * A test environment of Jest without a sandbox: tests use the globals of the process, so that packages are loaded once for
 * all test files of a process (jest_runtime.cjs). After each file it restores the environment variables, the
 * exit code and the listeners, of which Node prints a warning once eleven files have left one each.
 */
class ProcessEnvironment {
  constructor({ projectConfig: config }) {
    this.variables = { ...process.env };
    this.exitCode = process.exitCode;
    this.listeners = new Set(listenersOfProcess().map(([, , listener]) => listener));
    // Jest writes its console, `describe` and `process.exit` here; tests import what they need of these.
    this.global = Object.create(globalThis, {
      process: { value: Object.create(process), writable: true, configurable: true },
      global: { value: globalThis },
    });
    this.moduleMocker = new ModuleMocker(globalThis);
    const timerConfig = { idToRef: (id) => id, refToId: (ref) => ref };
    const options = { config, global: globalThis };
    this.fakeTimers = new LegacyFakeTimers({ ...options, moduleMocker: this.moduleMocker, timerConfig });
    this.fakeTimersModern = new ModernFakeTimers(options);
  }

  setup() {
    return Promise.resolve();
  }

  teardown() {
    this.fakeTimers.dispose();
    this.fakeTimersModern.dispose();
    for (const key of stateOfJest) Reflect.deleteProperty(globalThis, Symbol.for(key));
    for (const name of Object.keys(process.env))
      if (!(name in this.variables)) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, this.variables);
    process.exitCode = this.exitCode;
    for (const [emitter, event, listener] of listenersOfProcess())
      if (!this.listeners.has(listener)) emitter.removeListener(event, listener);
    return Promise.resolve();
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  /** Jest runs nothing without a context. jest_runtime.cjs uses the process's own one instead of this. */
  getVmContext() {
    return {};
  }
}

module.exports = ProcessEnvironment;
