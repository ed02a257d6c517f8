import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { PreviewResponse } from '../../../http/console/schema.ts';
import { toFailure, type ApiFailure } from '../../api/api_failure.ts';
import { api } from '../../api/client.ts';

/** What an export would write, and why that is not known. */
export interface Preview {
  readonly data: PreviewResponse | undefined;
  readonly failure: ApiFailure | undefined;
  readonly isLoading: boolean;
}

/** The pause in typing after which the preview is read again. */
const pauseMs = 700;

/** The path of an operation on a new or an existing export that only the console needs. */
export const consolePath = (id: string | null, operation: 'preview' | 'estimate'): string =>
  `console/batch_exports/${id === null ? '' : `${id}/`}${operation}/`;

/**
 * Reads the preview of a body again after each pause in typing, and when the source was checked again (`sourceChecks`).
 * What was read before stays until then.
 */
export function usePreview(
  id: string | null,
  body: Readonly<Record<string, unknown>>,
  sourceChecks: number,
): Preview {
  const state = useSignal<Preview>({ data: undefined, failure: undefined, isLoading: true });
  const text = JSON.stringify(body);
  useEffect(() => {
    const stop = new AbortController();
    state.value = { ...state.peek(), isLoading: true };
    const timer = window.setTimeout(() => {
      api
        .post<PreviewResponse>(consolePath(id, 'preview'), JSON.parse(text), stop.signal)
        .then((data) => {
          state.value = { data, failure: undefined, isLoading: false };
        })
        .catch((error: unknown) => {
          if (!stop.signal.aborted)
            state.value = { ...state.peek(), failure: toFailure(error), isLoading: false };
        });
    }, pauseMs);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [id, text, sourceChecks]);
  return state.value;
}
