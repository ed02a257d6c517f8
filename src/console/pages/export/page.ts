import { EmptyState } from '../../components/empty_state.ts';
import { Page } from '../../components/page.ts';
import { html, type View } from '../../html.ts';

/** The page Export. */
export default function ExportPage(): View {
  return html`<${Page} title="Export"><${EmptyState} title="Not built yet" /><//>`;
}
