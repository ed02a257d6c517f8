/** An interval of an export, which the measured pages show. */
export interface ShownInterval {
  readonly exportId: string;
  readonly start: string;
}

/** The requests that each page of src/console sends when it is opened, relative to the project. */
export const pageRequests = ({
  exportId,
  start,
}: ShownInterval): Readonly<Record<string, readonly string[]>> => {
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
      `${read}/history/`,
      'webhooks/?limit=1000',
    ],
    interval: [
      `${own}/`,
      `${read}/intervals/${encodeURIComponent(start)}/`,
      `${read}/intervals/${encodeURIComponent(start)}/verifications/`,
    ],
    edit: [`${own}/`],
    query: ['console/query/vocabulary/', 'dashboards/'],
  };
};
