/** What a page is given: the parameters of its path. The query is `currentQuery`. */
export interface PageProps {
  readonly params: Readonly<Record<string, string>>;
}

/** The path of `EXPORTD_BASE_URL`, which a proxy serves exportd at; empty without one. This module is served below it. */
export const basePath = /^(.*)\/console\/assets\//.exec(new URL(import.meta.url).pathname)?.[1] ?? '';

/** A path of the server as the browser requests it: `/api/docs` below `basePath`. */
export const serverPath = (path: string): string => basePath + path;

/** The paths of pages, for links. Apart from `routes`, which imports the pages. */
export const paths = {
  exports: serverPath('/'),
  newExport: serverPath('/exports/new'),
  export: (id: string) => serverPath(`/exports/${id}`),
  editExport: (id: string) => serverPath(`/exports/${id}/edit`),
  /** `start` is the start of the interval, ISO 8601. */
  interval: (id: string, start: string) =>
    serverPath(`/exports/${id}/intervals/${encodeURIComponent(start)}`),
  /** The page of an interval with the dialog that keeps or removes rows. */
  difference: (id: string, start: string) =>
    serverPath(`/exports/${id}/intervals/${encodeURIComponent(start)}?difference`),
  query: serverPath('/query'),
  keys: serverPath('/keys'),
  audit: serverPath('/audit'),
  source: serverPath('/source'),
  webhooks: serverPath('/webhooks'),
};
