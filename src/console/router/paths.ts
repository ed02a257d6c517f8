/** What a page is given: the parameters of its path. The query is `currentQuery`. */
export interface PageProps {
  readonly params: Readonly<Record<string, string>>;
}

/** The paths of pages, for links. Apart from `routes`, which imports the pages. */
export const paths = {
  exports: '/',
  newExport: '/exports/new',
  export: (id: string) => `/exports/${id}`,
  editExport: (id: string) => `/exports/${id}/edit`,
  /** `start` is the start of the interval, ISO 8601. */
  interval: (id: string, start: string) => `/exports/${id}/intervals/${encodeURIComponent(start)}`,
  query: '/query',
  keys: '/keys',
  audit: '/audit',
  source: '/source',
  webhooks: '/webhooks',
};
