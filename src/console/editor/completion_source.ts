import type { ProjectNamesResponse, VocabularyResponse } from '../../http/console/schema.ts';
import { may } from '../api/session.ts';
import { useResource } from '../api/resource.ts';
import type { CompletionSource } from './completion.ts';

/** What editors of queries complete; null until it is read, and for keys that may not query. */
export function useCompletionSource(): CompletionSource | null {
  const mayQuery = may('query:read');
  const vocabulary = useResource<VocabularyResponse>(mayQuery ? 'console/query/vocabulary/' : null);
  // Reading the names scans rows: first what every query needs.
  const names = useResource<ProjectNamesResponse>(vocabulary.data ? 'console/query/names/' : null);
  return vocabulary.data ? { vocabulary: vocabulary.data, names: names.data ?? null } : null;
}
