/** Requests to shut down from outside the process. */
export interface ShutdownSignals {
  /** Resolves at the first request: Ctrl-C, SIGTERM, or the exit of the parent process. */
  readonly first: Promise<void>;
}

/** Listens for shutdown requests. `onSecond` is called for every further request, to exit at once. */
export function listenForShutdown(onSecond: () => void): ShutdownSignals {
  let requested = false;
  const first = new Promise<void>((resolve) => {
    const request = () => {
      if (requested) onSecond();
      requested = true;
      resolve();
    };
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, request);
    process.once('disconnect', () => {
      if (!requested) request();
    });
  });
  // The IPC channel to the parent must not keep this process alive.
  process.channel?.unref();
  return { first };
}
