/** Prints one line of progress. */
export type Report = (line: string) => void;

/** Prefixes each line with the seconds since the npm script was called (bootstrap.mjs), or else since now. */
export function createReport(stream: NodeJS.WritableStream = process.stdout): Report {
  const startedAt = Number(process.env.EXPORTD_STARTED_AT) || Date.now();
  return (line) => {
    const seconds = ((Date.now() - startedAt) / 1_000).toFixed(1);
    stream.write(`${seconds.padStart(6)} s  ${line}\n`);
  };
}

/** Repeats a line with the elapsed seconds during a slow step. @returns Stops the repetition. */
export function reportWhile(report: Report, description: string, everySeconds = 10): () => void {
  const startedAt = performance.now();
  const timer = setInterval(() => {
    report(`${description} (${String(Math.round((performance.now() - startedAt) / 1_000))} s so far)`);
  }, everySeconds * 1_000);
  return () => clearInterval(timer);
}
