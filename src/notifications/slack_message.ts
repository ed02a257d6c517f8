import { isAboutOutage, type Notification, sentenceOf, sentenceWithName } from './notification.ts';

/** A message of Slack's incoming webhooks. */
export interface SlackMessage {
  /** What a client shows that has no blocks, such as a push notification. */
  readonly text: string;
  readonly blocks: readonly SlackBlock[];
}

interface SlackText {
  readonly type: 'mrkdwn';
  readonly text: string;
}

type SlackBlock =
  | { readonly type: 'section'; readonly text: SlackText }
  | { readonly type: 'context'; readonly elements: readonly SlackText[] };

/** Slack rejects a block with more than 3,000 characters, of which an escaped one has up to five. */
const maxErrorLength = 500;

/**
 * Formats a notification for Slack: an outage in one line.
 * @param url the page of the export, or of all; null without one
 */
export function slackMessage(notification: Notification, url: string | null): SlackMessage {
  const { type, data } = notification;
  const isOutage = isAboutOutage(data);
  const description = sentenceOf(notification);
  const title = escapeMarkup(isOutage ? description : (data.batch_export_name ?? 'exportd'));
  const heading = `*${url === null ? title : `<${url}|${title}>`}*`;
  const context = [type, `project ${data.project_id}`, data.incident && `incident ${data.incident.id}`];
  return {
    text: escapeMarkup(sentenceWithName(notification)),
    blocks: [
      section(isOutage ? heading : `${heading}\n${escapeMarkup(description)}`),
      ...(data.latest_error === null ? [] : [section(code(data.latest_error))]),
      ...(data.condition === null || isOutage
        ? []
        : [section(`Now: ${escapeMarkup(data.condition.summary)}`)]),
      ...(data.manifest_key === null ? [] : [section(`Manifest: \`${escapeMarkup(data.manifest_key)}\``)]),
      { type: 'context', elements: [markdown(context.filter((part) => part !== null).join(' · '))] },
    ],
  };
}

/** Formats a plain message for Slack: what happened, and details of it. */
export const plainSlackMessage = (title: string, details: string): SlackMessage => ({
  text: escapeMarkup(title),
  blocks: [section(`*${escapeMarkup(title)}*`), section(code(details))],
});

const markdown = (text: string): SlackText => ({ type: 'mrkdwn', text });
const section = (text: string): SlackBlock => ({ type: 'section', text: markdown(text) });

/** Backticks would end the code. */
function code(text: string): string {
  const shown = text.length > maxErrorLength ? `${text.slice(0, maxErrorLength).toWellFormed()}…` : text;
  return `\`\`\`${escapeMarkup(shown.replaceAll('`', "'"))}\`\`\``;
}

/** The characters that Slack interprets, such as `<!channel>`. */
const escapeMarkup = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
