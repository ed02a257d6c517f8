/** Requests to S3 since the start of a worker, from its metrics. */
export async function s3RequestsOf(workerHttpPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${String(workerHttpPort)}/metrics`, {
    signal: AbortSignal.timeout(5_000),
  });
  return requestsIn(await response.text());
}

/** The sum of `exportd_s3_requests_total` over all labels. */
export const requestsIn = (metrics: string): number =>
  [...metrics.matchAll(/^exportd_s3_requests_total\S* (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
