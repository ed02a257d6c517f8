import { medianOf, rounded } from '../results.ts';

/** Opened before the measurement, so that plans and connections exist. */
const warmUps = 3;

/**
 * The requests that each page of src/console sends when it is opened, relative to the project.
 * @param start of the interval that is shown
 */
export function pageRequests(exportId: string, start: string): Readonly<Record<string, readonly string[]>> {
  const own = `batch_exports/${exportId}`;
  const read = `console/${own}`;
  return {
    exports: ['console/overview/'],
    export: [
      `${own}/`,
      `${read}/timeline/`,
      `${read}/active_runs/`,
      `${own}/runs/?limit=50`,
      `${own}/backfills/`,
      `${own}/logs/`,
      'webhooks/?limit=1000',
    ],
    interval: [
      `${own}/`,
      `${own}/intervals/${encodeURIComponent(start)}/`,
      `${own}/intervals/${encodeURIComponent(start)}/verifications/`,
    ],
    edit: [`${own}/`],
    query: ['console/query/vocabulary/', 'console/query/names/'],
  };
}

/** Measures requests that are sent at once, as a browser sends them. `read` returns the bytes of a response. */
export async function measurePage(
  paths: readonly string[],
  repeat: number,
  read: (path: string) => Promise<number>,
) {
  const times: number[] = [];
  let bytes = 0;
  for (let count = 0; count < warmUps + repeat; count += 1) {
    const startedAt = performance.now();
    const sizes = await Promise.all(paths.map(read));
    if (count >= warmUps) times.push(performance.now() - startedAt);
    bytes = sizes.reduce((sum, size) => sum + size, 0);
  }
  return { bytes, median_ms: rounded(medianOf(times)), maximum_ms: rounded(Math.max(...times)) };
}
