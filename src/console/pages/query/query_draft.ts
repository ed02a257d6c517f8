import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { newForm, toQuery } from './insight_form.ts';
import type { AnyQuery } from './query_run.ts';

/** How a query is written: as SQL, by a form, or as JSON, which shows any of them. */
export type DraftView = 'sql' | 'trends' | 'funnel' | 'json';

const kinds: Readonly<Record<Exclude<DraftView, 'json'>, string>> = {
  sql: 'DialectQuery',
  trends: 'TrendsQuery',
  funnel: 'FunnelsQuery',
};

const viewOf = ({ kind }: AnyQuery): DraftView =>
  (Object.entries(kinds).find(([, one]) => one === (kind === 'HogQLQuery' ? 'DialectQuery' : kind))?.[0] as
    | DraftView
    | undefined) ?? 'json';

/** The query of the page. */
interface QueryDraft {
  readonly view: DraftView;
  /** Null while its JSON is none. */
  readonly query: AnyQuery | null;
  /** The text of its JSON. */
  readonly json: string;
  /** Why the text is no query; undefined if it is one. */
  readonly problem: string | undefined;
  /** Shows the query otherwise; a form without one of its kind begins with the last that it had. */
  readonly show: (view: DraftView) => void;
  readonly write: (query: AnyQuery) => void;
  readonly writeJson: (text: string) => void;
  /** Shows another query, as it is written best. */
  readonly open: (query: AnyQuery) => void;
}

const indented = (query: AnyQuery): string => JSON.stringify(query, null, 2);

/** Keeps the query of the page, and what was written of each kind before. */
export function useQueryDraft(first: AnyQuery): QueryDraft {
  const start = useMemo(() => ({ view: viewOf(first), query: first, json: indented(first) }), []);
  const state = useSignal<Pick<QueryDraft, 'view' | 'json'> & { query: AnyQuery }>(start);
  const problem = useSignal<string | undefined>(undefined);
  const drafts = useSignal<ReadonlyMap<string, AnyQuery>>(new Map([[first.kind, first]]));
  const set = (query: AnyQuery, view: DraftView, json = indented(query)) => {
    problem.value = undefined;
    drafts.value = new Map(drafts.peek()).set(query.kind, query);
    state.value = { query, view, json };
  };
  const { view, query, json } = state.value;
  return {
    view,
    query: problem.value === undefined ? query : null,
    json,
    problem: problem.value,
    show: (next) => {
      const kind = next === 'json' ? query.kind : kinds[next];
      set(viewOf(query) === next ? query : (drafts.peek().get(kind) ?? blank(kind)), next);
    },
    write: (next) => set(next, view),
    writeJson: (text) => {
      const parsed = parseQuery(text);
      if (typeof parsed === 'string') {
        problem.value = parsed;
        state.value = { ...state.peek(), json: text };
      } else set(parsed, 'json', text);
    },
    open: (next) => set(next, viewOf(next)),
  };
}

const blank = (kind: string): AnyQuery =>
  kind === 'TrendsQuery' || kind === 'FunnelsQuery' ? toQuery(newForm(kind)) : { kind, query: '' };

/** Whether two queries are equal, whatever the order of their fields. */
export const isSame = (one: AnyQuery | null, other: AnyQuery | null | undefined): boolean =>
  canonical(one) === canonical(other ?? null);

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_name, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  );

/** A query in JSON, or why the text is none. */
export function parseQuery(text: string): AnyQuery | string {
  try {
    const parsed: unknown = JSON.parse(text);
    const isQuery =
      typeof parsed === 'object' && parsed !== null && 'kind' in parsed && typeof parsed.kind === 'string';
    return isQuery
      ? (parsed as AnyQuery)
      : 'A query is an object with a kind, such as {"kind": "TrendsQuery", …}.';
  } catch (error) {
    return `This is no JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}
