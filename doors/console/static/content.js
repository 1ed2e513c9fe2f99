// What a tool returns beside its result.
import { html } from "/vendor/htm-preact.js";
import { T } from "/texts.js";

export function Content({ content, title }) {
  return html`<div class="pictures">
    ${(content || []).map((item, at) =>
      item.type === "image" && item.data && /^image\/(png|jpeg|webp|gif)$/.test(item.mime_type || "")
        ? html`<figure><img alt=${item.title || title || T.tools.picture(at + 1)} src=${`data:${item.mime_type};base64,${item.data}`} />${item.title ? html`<figcaption>${item.title}</figcaption>` : null}</figure>`
        : item.type === "text"
          ? html`<pre>${item.text || item.data}</pre>`
          : null,
    )}
  </div>`;
}
