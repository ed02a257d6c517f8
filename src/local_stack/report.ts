/** Shows one line of progress to the person who started the stack. */
export type Report = (line: string) => void;

/** A report that prints each line with the seconds since its creation, so that slow steps are seen. */
export function createReport(stream: NodeJS.WritableStream = process.stdout): Report {
  const begin = performance.now();
  return (line) => {
    const seconds = ((performance.now() - begin) / 1_000).toFixed(1);
    stream.write(`${seconds.padStart(6)} s  ${line}\n`);
  };
}

/** Repeats a line with the elapsed seconds while something slow goes on. @returns ends the repetition. */
export function reportWhile(report: Report, what: string, everySeconds = 10): () => void {
  const begin = performance.now();
  const timer = setInterval(() => {
    report(`${what} (${String(Math.round((performance.now() - begin) / 1_000))} s so far)`);
  }, everySeconds * 1_000);
  return () => clearInterval(timer);
}
