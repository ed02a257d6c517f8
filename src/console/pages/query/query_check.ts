import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { CheckedQueryResponse } from '../../../http/console/schema.ts';
import { api } from '../../api/client.ts';

type QueryProblem = NonNullable<CheckedQueryResponse['error']>;

/** The pause in typing after which a query is checked. */
const pauseMs = 500;

/** What is wrong with a query, checked on the server after each pause in typing; null while nothing is known. */
export function useQueryCheck(query: string): QueryProblem | null {
  const checked = useSignal<{ readonly query: string; readonly problem: QueryProblem | null }>({
    query: '',
    problem: null,
  });
  useEffect(() => {
    if (query.trim() === '') return undefined;
    const stop = new AbortController();
    const timer = window.setTimeout(() => {
      api
        .post<CheckedQueryResponse>('console/query/check/', { query }, stop.signal)
        .then(({ error }) => {
          checked.value = { query, problem: error };
        })
        // The query itself says what is wrong when it runs.
        .catch(() => undefined);
    }, pauseMs);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [query]);
  return checked.value.query === query ? checked.value.problem : null;
}
