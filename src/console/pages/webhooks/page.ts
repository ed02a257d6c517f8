import '../../components/shared.ts';
import { Page } from '../../components/page.ts';
import { html, type View } from '../../html.ts';
import { Webhooks } from '../export/webhooks.ts';

/** Every webhook of the project. Those that are added here hear of every export. */
export default function WebhooksPage(): View {
  return html`<${Page}
    title="Webhooks"
    subtitle="They post what happens to the exports of the project to a URL or to Slack."
  >
    <${Webhooks} exportId=${null} />
  <//>`;
}
