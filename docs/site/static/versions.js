// The versions as a choice, where there are several; a page from a file keeps the link to their list.
async function chooseVersion(link) {
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const versions = await (await fetch(new URL("versions.json", root))).json();
  if (Object.keys(versions).length === 1) return;
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "Version");
  for (const [name, folder] of Object.entries(versions)) {
    const own = folder === "./";
    choice.add(new Option(`Version ${name}`, new URL(folder, root).href, own, own));
  }
  // The same page of another version, or its first where it has none.
  choice.addEventListener("change", async () => {
    const page = new URL(location.pathname.slice(root.pathname.length), choice.value);
    const answer = await fetch(page, { method: "HEAD" });
    location.href = answer.ok ? page : choice.value;
  });
  link.replaceWith(choice);
}

if (location.protocol !== "file:") chooseVersion(document.querySelector(".versions a"));
