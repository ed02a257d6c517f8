import type { Resource } from '../api/resource.ts';
import { html, type Content, type View } from '../html.ts';
import { FailureNotice } from './failure_notice.ts';

/** Shows a resource once it is read, and its failure if it cannot be. `children` is a function of the data. */
export function Loaded<Data>({
  resource,
  children,
}: {
  readonly resource: Resource<Data>;
  readonly children: (data: Data) => Content;
}): View {
  const { data, failure, reload } = resource;
  return html`<div class="loaded" aria-busy=${resource.isLoading ? 'true' : undefined}>
    ${failure && html`<${FailureNotice} failure=${failure} onRetry=${reload} />`}
    ${data === undefined ? !failure && html`<div class="loading" />` : children(data)}
  </div>`;
}
