import { EmptyState } from '../../components/empty_state.ts';
import { Page } from '../../components/page.ts';
import { html, type View } from '../../html.ts';

/** The page Edit. */
export default function EditPage(): View {
  return html`<${Page} title="Edit"><${EmptyState} title="Not built yet" /><//>`;
}
