/** What a process that works for a person is told from outside. */
export interface StopRequests {
  /** Resolves at the first request to stop: Ctrl-C, SIGTERM, or the end of the process that started this one. */
  readonly first: Promise<void>;
}

/** Listens for requests to stop; `onSecond` is called for a person who does not want to wait. */
export function listenForStop(onSecond: () => void): StopRequests {
  let asked = false;
  const first = new Promise<void>((resolve) => {
    const ask = () => {
      if (asked) onSecond();
      asked = true;
      resolve();
    };
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, ask);
    process.once('disconnect', () => {
      if (!asked) ask();
    });
  });
  // The channel to the starting process must not keep this one alive.
  process.channel?.unref();
  return { first };
}
