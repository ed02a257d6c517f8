import type { ApiFailure } from '../api/api_failure.ts';
import { html, type View } from '../html.ts';
import { Button } from './button.ts';

/** An error of the API, with a button that tries again. */
export function FailureNotice({
  failure,
  onRetry,
}: {
  readonly failure: ApiFailure;
  readonly onRetry?: () => unknown;
}): View {
  return html`<div class="notice notice-danger" role="alert">
    <p>${failure.message}</p>
    ${onRetry && html`<${Button} onClick=${() => void onRetry()}>Try again<//>`}
  </div>`;
}
